// A sweep that is ready to be answered: the scenario with everything it refers to, the keys that
// vary, and the values of each point by its number. The values of any point can be computed alone,
// so that points can be answered in any order, by any worker, and repeatedly.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario.h"
#include "scenarios/sweep/axes.h"
#include "scenarios/sweep/constraint.h"
#include "scenarios/sweep/overrides.h"
#include "scenarios/sweep/references.h"

namespace trainyard {

struct Sweep {
  std::string name;
  std::shared_ptr<const Document> origin;  // where relative paths in values start
  SweepDocument document;
  Json base;          // the scenario without its tag; it refers to no other document by path
  Scenario scenario;  // `base` as a value
  std::vector<SweepColumn> columns;
  std::vector<SweepAxis> axes;
  std::optional<CsvOverrides> csv;  // if there is a CSV file, instead of axes
  std::vector<Constraint> constraints;
  std::int64_t points = 0;  // all, also those that the constraints exclude
  std::vector<SweepInput> inputs;
  std::string text;  // a self-contained sweep/1 document, which reads back to this sweep

  Place place() const { return {origin.get(), ""}; }
};

Expected<Sweep> read_sweep(const std::filesystem::path& file);

// A sweep from what a result file keeps: its `text`, the CSV file's text, and where the document
// was.
Expected<Sweep> sweep_of_text(const std::string& text, const std::string& csv,
                              const std::filesystem::path& file);

// Fails for what groups of unlike nodes do not support: simulations, runs on hardware, and a plan
// in the scenario.
Expected<void> check_groups_are_answered(const SweepDocument& sweep, const Scenario& scenario);

// The values of a point, one for each column; an empty text: the scenario's own value. In a grid
// the last axis varies fastest; with one key at a time, point 0 is the scenario itself.
void values_at(const Sweep& sweep, std::int64_t point, std::vector<SweepValue>& values);

// Whether the point meets all constraints.
bool is_asked_for(const Sweep& sweep, const std::vector<SweepValue>& values);

// The values that the point changes, as JSON: {"plan.tensor_parallel":8,…}.
std::string overrides_text(const Sweep& sweep, const std::vector<SweepValue>& values);

// The whole scenario of a point, as a document without its tag.
Expected<Json> scenario_of_point(const Sweep& sweep, const std::vector<SweepValue>& values);

}  // namespace trainyard
