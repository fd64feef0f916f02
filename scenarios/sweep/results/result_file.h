// Reads the result file of a sweep, whether the sweep is finished or not.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/sweep/references.h"
#include "scenarios/sweep/results/database.h"
#include "scenarios/sweep/results/point_row.h"

namespace trainyard {

// "TrAy", by which SQLite and the command `file` recognise it
inline constexpr int kApplicationId = 0x54724179;

// Fails unless the database has the schema of docs/sweeps.md in this version.
Expected<void> check_result_file(Database& database);

struct SessionRecord {
  std::string version, host, started;
  std::int64_t workers = 0, points = 0;
};

// The columns of table `points`, in the order in which rows are read and written here.
std::string columns_of_points();

PointStatus status_of(std::string_view name);

struct StatusCounts {
  std::array<std::int64_t, kStatusNames.size()> counts{};

  std::int64_t of(PointStatus status) const { return counts[static_cast<std::size_t>(status)]; }
};

struct RowQuery {
  std::optional<PointStatus> status;  // absent: all
  std::string_view order = "point";   // SQL
  std::int64_t limit = -1;            // negative: all
};

class ResultFile {
 public:
  static Expected<ResultFile> open(const std::filesystem::path& file);

  const std::filesystem::path& file() const { return file_; }
  // The value of a key in table `sweep`; empty: none.
  const std::string& said(const std::string& key) const;
  Expected<std::vector<SweepInput>> inputs();
  Expected<std::vector<SessionRecord>> sessions();
  Expected<StatusCounts> counts();
  // Fails unless all rows belong to points 0 … points − 1; the error is complete.
  Expected<void> check_points(std::int64_t points);

  // Calls `use` for each row until it returns false.
  Expected<void> each(const RowQuery& query, const std::function<bool(const PointRow&)>& use);

 private:
  ResultFile(std::filesystem::path file, Database database)
      : file_(std::move(file)), database_(std::move(database)) {}

  std::filesystem::path file_;
  Database database_;
  std::map<std::string, std::string> said_;
};

}  // namespace trainyard
