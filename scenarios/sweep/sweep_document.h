// A sweep as a document states it (`sweep/1`): a scenario, which of its keys vary and how the
// variations combine, and how each point is answered (docs/sweeps.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

enum class Evaluation { estimate, simulate, plan, goodput, run };
enum class Combination { grid, one_at_a_time, random };
enum class Scale { linear, geometric };

// The values of one key: listed, or a range.
struct AxisDocument {
  std::string key;  // of the scenario, dotted or as a JSON pointer
  std::vector<Json> values;
  Json from, to;  // ends of a range; null: absent
  int steps = 0;  // values in the range, both ends included; 0: absent
  Scale scale = Scale::linear;
  std::vector<AxisDocument> zip;  // instead of all others: keys that vary together
};

struct SweepDocument {
  std::string name;
  Json scenario;  // an object, or a reference to a document
  Evaluation evaluate = Evaluation::estimate;
  Objective objective = Objective::step_time;
  Combination combine = Combination::grid;
  std::int64_t samples = 0;
  std::int64_t seed = 0;
  std::vector<AxisDocument> vary;
  std::string overrides;  // path of a CSV file
  std::vector<std::string> where;
};

}  // namespace trainyard
