#include "scenarios/sweep/results/result_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/fields/place.h"
#include "scenarios/json/file.h"
#include "scenarios/sweep/results/store.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

void read_row(const Statement& select, PointRow& row) {
  row.point = select.integer(0);
  row.status = status_of(select.text(1));
  row.note = select.text(2);
  row.overrides = select.text(3);
  row.plan = select.text(4);
  for (std::size_t i = 0; i < kFigures; ++i) {
    row.figures[i] = select.number(static_cast<int>(i) + 5);
  }
}

Expected<std::map<std::string, std::string>> read_said(Database& database) {
  auto select = database.prepare("SELECT key, value FROM sweep");
  if (!select) return tl::unexpected(select.error());
  std::map<std::string, std::string> said;
  while (true) {
    const auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return said;
    said[select->text(0)] = select->text(1);
  }
}

}  // namespace

std::string columns_of_points() {
  std::string list = "point, status, note, overrides, plan";
  for (const std::string_view name : kFigureNames) list += fmt::format(", {}", name);
  return list;
}

PointStatus status_of(std::string_view name) {
  const auto found = std::ranges::find(kStatusNames, name);
  return found == kStatusNames.end() ? PointStatus::refused
                                     : static_cast<PointStatus>(found - kStatusNames.begin());
}

Expected<void> check_result_file(Database& database) {
  const auto id = database.integer("PRAGMA application_id");
  if (!id && !database.is_no_database()) return tl::unexpected(id.error());
  if (!id || *id != kApplicationId) return failure("", "is no result file of a sweep");
  const auto version = database.integer("PRAGMA user_version");
  if (!version) return tl::unexpected(version.error());
  if (*version == kStoreVersion) return {};
  return failure(
      "", fmt::format("found results of schema {}; allowed: schema {}", *version, kStoreVersion));
}

Expected<ResultFile> ResultFile::open(const fs::path& file) {
  const auto refuse = [&file](const Error& error) {
    return failure(shown_path(file), error.message);
  };
  std::error_code missing;
  if (!fs::is_regular_file(file, missing)) {
    return refuse({"", "does not exist; allowed: the result file of a sweep"});
  }
  auto database = Database::open(file, Database::Access::read);
  if (!database) return refuse(database.error());
  if (auto known = check_result_file(*database); !known) return refuse(known.error());
  auto said = read_said(*database);
  if (!said) return refuse(said.error());
  ResultFile result(file, std::move(*database));
  result.said_ = std::move(*said);
  return result;
}

const std::string& ResultFile::said(const std::string& key) const {
  static const std::string nothing;
  const auto found = said_.find(key);
  return found == said_.end() ? nothing : found->second;
}

Expected<std::vector<SweepInput>> ResultFile::inputs() {
  auto select = database_.prepare("SELECT name, sha256 FROM inputs ORDER BY rowid");
  if (!select) return tl::unexpected(select.error());
  std::vector<SweepInput> inputs;
  while (true) {
    const auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return inputs;
    inputs.push_back({select->text(0), select->text(1)});
  }
}

Expected<std::vector<SessionRecord>> ResultFile::sessions() {
  auto select = database_.prepare(
      "SELECT version, host, started, workers, (SELECT total(count) FROM leases "
      "WHERE leases.session = sessions.session) FROM sessions ORDER BY session");
  if (!select) return tl::unexpected(select.error());
  std::vector<SessionRecord> sessions;
  while (true) {
    const auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return sessions;
    sessions.push_back({.version = select->text(0),
                        .host = select->text(1),
                        .started = select->text(2),
                        .workers = select->integer(3),
                        .points = select->integer(4)});
  }
}

Expected<StatusCounts> ResultFile::counts() {
  auto select = database_.prepare("SELECT status, count(*) FROM points GROUP BY status");
  if (!select) return tl::unexpected(select.error());
  StatusCounts counts;
  while (true) {
    const auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return counts;
    counts.counts[static_cast<std::size_t>(status_of(select->text(0)))] += select->integer(1);
  }
}

Expected<void> ResultFile::check_points(std::int64_t points) {
  auto select = database_.prepare(
      "SELECT point FROM points WHERE point < 0 UNION ALL "
      "SELECT point FROM points WHERE point >= ?1 LIMIT 1");
  if (!select) return failure(shown_path(file_), select.error().message);
  select->bind(1, points);
  const auto row = select->step();
  if (!row) return failure(shown_path(file_), row.error().message);
  if (!*row) return {};
  return failure(shown_path(file_), fmt::format("found point {}; allowed: from 0 to {}",
                                                select->integer(0), points - 1));
}

Expected<void> ResultFile::each(const RowQuery& query,
                                const std::function<bool(const PointRow&)>& use) {
  const std::string condition =
      query.status ? fmt::format("WHERE status = '{}'", name_of(*query.status)) : "";
  auto select =
      database_.prepare(fmt::format("SELECT {} FROM points {} ORDER BY {} LIMIT {}",
                                    columns_of_points(), condition, query.order, query.limit));
  if (!select) return tl::unexpected(select.error());
  PointRow row;
  while (true) {
    const auto more = select->step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return {};
    read_row(*select, row);
    if (!use(row)) return {};
  }
}

}  // namespace trainyard
