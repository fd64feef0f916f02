// What differs between two documents, and between two result files: which keys changed, and where
// the answers moved.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/json/json_document.h"
#include "scenarios/sweep/references.h"
#include "scenarios/sweep/results/point_row.h"

namespace trainyard {

struct KeyChange {
  std::string key;            // dotted
  std::string before, after;  // as JSON; empty: not there
  friend bool operator==(const KeyChange&, const KeyChange&) = default;
};

// Leaf by leaf, in the order of `before`, then what only `after` has.
std::vector<KeyChange> changes_between(const Json& before, const Json& after);

// The scenario document `file` with what it refers to by path in it, without its tag.
Expected<Json> resolved_scenario(const std::filesystem::path& file);

// A point that both files answered, by what it has of its own, and that moved.
struct MovedPoint {
  PointRow before, after;

  // After over before, minus 1; 0 where one has no step time.
  double step_time_change() const;
  // Position of the part of the breakdown that moved most; kFigures: none did.
  std::size_t largest_part() const;
  // … of the figure that moved most for what it is, by all of it where one side alone has it.
  std::size_t largest_figure() const;
};

struct ResultDifference {
  std::vector<KeyChange> documents;
  std::vector<SweepInput> inputs_before, inputs_after;  // those that the other does not have
  std::int64_t same = 0, moved = 0;
  std::int64_t only_before = 0, only_after = 0;
  std::int64_t fits_no_more = 0, fits_now = 0;
  // Largest relative change of the step first; of points whose step did not move, of any figure.
  std::vector<MovedPoint> largest;
};

inline constexpr std::int64_t kMovedPointsTold = 20;

Expected<ResultDifference> difference_of(const std::filesystem::path& before,
                                         const std::filesystem::path& after);

// Whether the file is a database, not a document. What is no regular file is not opened.
bool is_database(const std::filesystem::path& file);

}  // namespace trainyard
