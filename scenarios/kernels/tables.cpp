#include "scenarios/kernels/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "scenarios/fields/place.h"
#include "scenarios/interchange/documents/foreign_file.h"
#include "scenarios/json/file.h"
#include "scenarios/json/json_document.h"

namespace trainyard {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // which spreadsheets write

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

const KernelFamily* family_of(std::span<const std::string_view> header) {
  const auto families = kernel_families();
  const auto found = std::ranges::find_if(families, [&](const KernelFamily& family) {
    return std::ranges::equal(family.columns, header);
  });
  return found == families.end() ? nullptr : &*found;
}

std::string known_headers() {
  std::vector<std::string> headers;
  for (const KernelFamily& family : kernel_families()) {
    headers.push_back(fmt::format("{} ({})", fmt::join(family.columns, ","), family.name));
  }
  return fmt::format("{}", fmt::join(headers, "; "));
}

// Reads rows into the table; on an error it has the rows before the first unreadable one.
Expected<void> read_rows(std::string_view rows, KernelTable& table) {
  const std::size_t columns = table.family->columns.size();
  for (int row = 2; !rows.empty(); ++row) {
    const std::string_view line = take_line(rows);
    if (line.empty() && rows.empty()) break;
    const auto where = [&] { return fmt::format("{}: row {}", table.file, row); };
    auto cells = cells_of(line);
    if (cells.size() != columns) {
      return failure(where(), fmt::format("found {} column{} ({}); allowed: {} ({})", cells.size(),
                                          cells.size() == 1 ? "" : "s", shown(line), columns,
                                          fmt::join(table.family->columns, ",")));
    }
    KernelRow cell_reader(table.family->columns, std::move(cells));
    table.family->read(cell_reader, table.samples);
    if (cell_reader.error()) {
      std::visit([](auto& read) { read.pop_back(); }, table.samples);
      return failure(where(), *cell_reader.error());
    }
  }
  return {};
}

}  // namespace

std::string digest_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  return fmt::format("{:016x}", hash);
}

Expected<KernelTable> parse_kernel_table(std::string_view text, const std::string& name,
                                         const RowCheck& check) {
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  const std::string_view header = take_line(rest);
  KernelTable table{name, family_of(cells_of(header)), {}, digest_of(text)};
  if (table.family == nullptr) {
    return failure(fmt::format("{}: row 1", name),
                   fmt::format("found the header {}; allowed: {}", shown(header), known_headers()));
  }
  auto read = read_rows(rest, table);
  const bool empty = std::visit([](const auto& rows) { return rows.empty(); }, table.samples);
  if (check && !empty) {
    if (auto possible = check(table); !possible) return tl::unexpected(possible.error());
  }
  if (!read) return tl::unexpected(std::move(read.error()));
  if (empty) return failure(name, "found no rows; allowed: one or more");
  return table;
}

Expected<KernelTable> read_kernel_table(const std::filesystem::path& file, const RowCheck& check) {
  const auto text = read_file(file);
  if (!text) return failure(shown_path(file), text.error().message);
  return parse_kernel_table(*text, shown_path(file), check);
}

}  // namespace trainyard
