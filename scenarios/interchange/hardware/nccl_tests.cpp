#include "scenarios/interchange/hardware/nccl_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "scenarios/interchange/hardware/known_hardware.h"
#include "scenarios/json/json_document.h"
#include "scenarios/kernels/report.h"
#include "scenarios/machine/device_document.h"

namespace trainyard {
namespace {

struct TestProgram {
  std::string_view name;       // in nccl-tests
  std::string_view operation;  // in a table of kernels
};
constexpr std::array kPrograms = {
    TestProgram{"all_reduce_perf", "all_reduce"}, TestProgram{"all_gather_perf", "all_gather"},
    TestProgram{"reduce_scatter_perf", "reduce_scatter"}, TestProgram{"alltoall_perf", "alltoall"}};

std::optional<double> column_number(std::string_view word) {
  double value = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == word.data() + word.size();
  return whole ? std::optional(value) : std::nullopt;
}

// Turns the rows into a table of kernels (CSV), whose reader has the checks and whose family the
// fit.
class Reader {
 public:
  explicit Reader(const ForeignFile& file) : file_(file) {}

  Expected<void> read() {
    std::string_view rest = file_.text;
    for (line_ = 1; !rest.empty(); ++line_) {
      if (auto done = read_line(take_line(rest)); !done) return done;
    }
    if (rows_ > 0) return {};
    return file_.error("found no row of sizes and times; allowed: what nccl-tests prints");
  }

  std::string table = "op,gpus,bytes,latency_us\n";
  std::string product;

 private:
  Expected<void> read_line(std::string_view line) {
    for (const TestProgram& program : kPrograms) {
      if (line.find(program.name) == std::string_view::npos) continue;
      if (operation_ != program.operation) ranks_.clear();
      operation_ = program.operation;
    }
    const auto words = words_of(line);
    if (words.empty()) return {};
    const bool comment = words.front().starts_with('#');
    if (comment && line.find("Using devices") != std::string_view::npos) ranks_.clear();
    const bool rank = comment && words.size() > 8 && words[1] == "Rank";
    if (rank) return read_rank(words);
    if (comment && words.size() > 3 && words[1] == "size") return read_head(words);
    if (comment || time_column_ == 0 || !column_number(words.front())) return {};
    return read_row(words);
  }

  // "#  Rank  0 Group  0 Pid 52 on host device  0 [0x07] NVIDIA H100 80GB HBM3"
  Expected<void> read_rank(const std::vector<std::string_view>& words) {
    const auto on = std::ranges::find(words, "on");
    const auto bracket =
        std::ranges::find_if(words, [](std::string_view word) { return word.ends_with(']'); });
    if (on == words.end() || on + 1 == words.end() || bracket == words.end()) return {};
    hosts_.insert(std::string(*(on + 1)));
    if (timed_) ranks_.clear();  // the list of another run begins
    timed_ = false;
    ranks_.insert(std::string(words[2]));
    product.clear();
    for (auto word = bracket + 1; word != words.end(); ++word) {
      product += fmt::format("{}{}", product.empty() ? "" : " ", *word);
    }
    if (hosts_.size() == 1) return {};
    return file_.error_in_line(line_, fmt::format("found a second host {}; allowed: a run inside "
                                                  "one node, whose curves a device has",
                                                  shown(*(on + 1))));
  }

  Expected<void> read_head(const std::vector<std::string_view>& words) {
    const auto time = std::ranges::find(words, "time");
    if (time != words.end()) time_column_ = static_cast<std::size_t>(time - words.begin()) - 1;
    return {};
  }

  Expected<void> read_row(const std::vector<std::string_view>& words) {
    if (operation_.empty()) {
      return file_.error_in_line(line_,
                                 "found times of no named test; allowed: before them a line with "
                                 "the command, of all_reduce_perf, all_gather_perf, "
                                 "reduce_scatter_perf or alltoall_perf");
    }
    if (ranks_.size() < 2) {
      return file_.error_in_line(
          line_, fmt::format("found times of {} ranks; allowed: a list of 2 or more before them "
                             "(#  Rank  0 …)",
                             ranks_.size()));
    }
    const auto bytes = column_number(words.front());
    const auto time =
        words.size() > time_column_ ? column_number(words[time_column_]) : std::nullopt;
    if (!bytes || !time || !(*time > 0) || !(*bytes >= 0) || *bytes > 1e15) {
      return file_.error_in_line(
          line_, fmt::format("found {}; allowed: bytes and, in column {}, a time above 0 us",
                             shown(words.front()), time_column_ + 1));
    }
    timed_ = true;
    if (*bytes < 1) return {};
    table += fmt::format("{},{},{:.0f},{}\n", operation_, ranks_.size(), *bytes, *time);
    ++rows_;
    return {};
  }

  const ForeignFile& file_;
  std::size_t line_ = 1;
  std::size_t time_column_ = 0;
  std::size_t rows_ = 0;
  bool timed_ = false;  // whether a row came since the last rank
  std::string_view operation_;
  std::set<std::string> hosts_, ranks_;
};

std::string curves_in_words(const Device& device) {
  std::string text;
  for (const CollectiveCurve& curve : device.collectives) {
    constexpr auto kNames = std::to_array<std::string_view>(
        {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send"});
    text += fmt::format("{}{} of {}: {:.3g} us, {:.4g} GB/s", text.empty() ? "" : " · ",
                        kNames[static_cast<std::size_t>(curve.operation)], curve.gpus,
                        curve.latency.value() * 1e6, curve.bandwidth.value() / 1e9);
  }
  return text;
}

}  // namespace

Expected<NcclTests> read_nccl_tests(const ForeignFile& file) {
  Reader reader(file);
  if (auto done = reader.read(); !done) return tl::unexpected(done.error());
  auto table = parse_kernel_table(reader.table, file.name);
  if (!table) return tl::unexpected(table.error());
  return NcclTests{std::move(*table), reader.product};
}

Expected<Imported> import_nccl_tests(const ForeignFile& file, const std::string& device,
                                     std::string_view date) {
  const auto tests = read_nccl_tests(file);
  if (!tests) return tl::unexpected(tests.error());
  const std::string name =
      device.empty() ? std::string(catalog_name_of_product(tests->product)) : device;
  if (name.empty()) {
    return file.error(
        fmt::format("found the device {}, which the catalog does not have; allowed: "
                    "--device NAME",
                    shown(std::string_view(tests->product))));
  }
  const auto base = read_device(name, "--device");
  if (!base) return tl::unexpected(base.error());
  auto fit = fit_kernels(base->device, {tests->table}, date, [](double) {});
  if (!fit) return tl::unexpected(fit.error());
  Imported imported{device_document(fit->device, *base, fit->provenance),
                    fmt::format("{}: {}", name, curves_in_words(fit->device)),
                    {},
                    {}};
  imported.assumptions.push_back(
      fmt::format("everything but the collectives is as {} has it", name));
  return imported;
}

}  // namespace trainyard
