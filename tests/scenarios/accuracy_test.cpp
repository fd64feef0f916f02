// The claims of docs/accuracy.md, on the published runs beside the checkout.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/cost/estimate.h"
#include "scenarios/scenario.h"
#include "scenarios/validation.h"
#include "tests/support/shared_data.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// As `trainyard validate` prices a file.
std::vector<ValidationRow> priced_rows(const fs::path& file) {
  std::vector<ValidationRow> rows;
  const auto scenarios = read_scenarios(file);
  if (!scenarios) {
    ADD_FAILURE() << scenarios.error().where << ": " << scenarios.error().message;
    return rows;
  }
  for (const Scenario& scenario : *scenarios) {
    const PreparedJob job = prepare(scenario.job);
    const auto plan = make_plan(scenario.plan.value_or(PlanRequest{}), job.job.model,
                                job.job.cluster, job.job.training);
    if (!plan) {
      rows.push_back(unpriced_row(file.string(), scenario, plan.error().message));
      continue;
    }
    rows.push_back(
        priced_row(file.string(), scenario, estimate(job, resolve_recompute(job, *plan))));
  }
  return rows;
}

// Korthikanti et al. 2022, Table 5 and section 6.3.
TEST(Accuracy, OfKorthikantisRunsIsWithinEightPercent) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const auto report = summarise(priced_rows(shared / "measured" / "runs" / "korthikanti.json"));
  ASSERT_TRUE(report.mape.has_value());
  EXPECT_EQ(report.rows.size(), 9u);
  EXPECT_LE(*report.mape, 0.08);
}

TEST(Accuracy, EveryPublishedRunIsPriced) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  for (const auto& entry : fs::directory_iterator(shared / "measured" / "runs")) {
    if (entry.path().extension() != ".json") continue;
    for (const ValidationRow& row : priced_rows(entry.path())) {
      EXPECT_TRUE(row.predicted.has_value()) << row.name << ": " << row.note;
    }
  }
}

}  // namespace
}  // namespace trainyard
