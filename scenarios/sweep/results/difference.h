// The differences between two documents (which keys changed), and between two result files (where
// the answers moved).
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
  std::string before, after;  // as JSON; empty: absent
  friend bool operator==(const KeyChange&, const KeyChange&) = default;
};

// The changed leaves in the order of `before`, then those that only `after` has.
std::vector<KeyChange> changes_between(const Json& before, const Json& after);

// The scenario document `file` without its tag, with the documents it refers to by path copied in.
Expected<Json> resolved_scenario(const std::filesystem::path& file);

// A point that both files answered, matched by its overrides, with different answers.
struct MovedPoint {
  PointRow before, after;

  // The step time after / before − 1; 0 if either is unknown.
  double step_time_change() const;
  // Index in kFigureNames of the part of the breakdown that moved most; kFigures: none moved.
  std::size_t largest_part() const;
  // Likewise of the figure with the largest relative change, which is 1 if only one side has it.
  std::size_t largest_figure() const;
};

struct ResultDifference {
  std::vector<KeyChange> documents;
  std::vector<SweepInput> inputs_before, inputs_after;  // inputs that the other file does not have
  std::int64_t same = 0, moved = 0;
  std::int64_t only_before = 0, only_after = 0;
  std::int64_t fits_no_more = 0, fits_now = 0;
  // The largest relative changes of the step time first; if the step time is the same, of any
  // figure.
  std::vector<MovedPoint> largest;
};

inline constexpr std::int64_t kMovedPointsTold = 20;

Expected<ResultDifference> difference_of(const std::filesystem::path& before,
                                         const std::filesystem::path& after);

// Whether the file is a database and not a document. Only regular files are opened.
bool is_database(const std::filesystem::path& file);

}  // namespace trainyard
