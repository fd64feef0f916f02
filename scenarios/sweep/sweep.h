// A sweep that is ready to be answered: the scenario with everything it refers to, the keys that
// vary, and the values of each point by its number. Any point can be had without those before it,
// so that points can be answered in any order, by anyone, and again.
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
  std::shared_ptr<const Document> origin;  // what relative paths in values start from
  SweepDocument document;
  Json base;          // the scenario, without its tag; nothing in it refers to another document
  Scenario scenario;  // the same, read
  std::vector<SweepColumn> columns;
  std::vector<SweepAxis> axes;
  std::optional<CsvOverrides> csv;  // instead of axes
  std::vector<Constraint> constraints;
  std::int64_t points = 0;  // before the constraints
  std::vector<SweepInput> inputs;
  std::string text;  // the whole as a sweep/1 document, the scenario in it: reads back to this

  Place place() const { return {origin.get(), ""}; }
};

Expected<Sweep> read_sweep(const std::filesystem::path& file);

// From what a result file kept: `text`, the CSV file's text, and where the document was.
Expected<Sweep> sweep_of_text(const std::string& text, const std::string& csv,
                              const std::filesystem::path& file);

// Groups of unlike nodes have the step of the planner's best plan, and no other answer.
Expected<void> check_groups_are_answered(const SweepDocument& sweep, const Scenario& scenario);

// The values of point `point`, one of each column; an empty text: as the scenario has it.
void values_at(const Sweep& sweep, std::int64_t point, std::vector<SweepValue>& values);

// Whether the constraints leave the point.
bool is_asked_for(const Sweep& sweep, const std::vector<SweepValue>& values);

// {"plan.tensor_parallel":8,…}: what the point has of its own.
std::string overrides_text(const Sweep& sweep, const std::vector<SweepValue>& values);

// The whole scenario of a point, as a document without its tag.
Expected<Json> scenario_of_point(const Sweep& sweep, const std::vector<SweepValue>& values);

}  // namespace trainyard
