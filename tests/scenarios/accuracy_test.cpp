// Checks the claims of docs/accuracy.md on the published runs beside the checkout: every run is
// priced, and no file's error exceeds its tolerance. tests/scenarios/tolerances.json is the one
// table of claims; scripts/accuracy prints it beside what was reached.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/json/file.h"
#include "scenarios/json/json_document.h"
#include "scenarios/priced_run.h"
#include "scenarios/scenario.h"
#include "scenarios/validation.h"
#include "tests/scenarios/test_folder.h"
#include "tests/support/random_cases.h"
#include "tests/support/shared_data.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

std::vector<PricedRun> runs_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<PricedRun> runs;
  for (const fs::path& file : files) {
    const auto scenarios = read_scenarios(file);
    if (!scenarios) {
      ADD_FAILURE() << scenarios.error().where << ": " << scenarios.error().message;
      continue;
    }
    for (const Scenario& scenario : *scenarios) {
      runs.push_back(priced_run(file.stem().string(), scenario));
    }
  }
  return runs;
}

// The runs that figures of the catalog are fitted to.
std::vector<PricedRun> published_runs(const fs::path& shared) {
  return runs_in(shared / "measured" / "runs");
}

fs::path beside_this(const char* folder) {
  return source_folder() / "tests" / "scenarios" / folder;
}

ValidationReport report_of(const fs::path& shared) {
  return summarise(rows_of(published_runs(shared)));
}

Json tolerances() {
  return Json::parse(
      read_file(source_folder() / "tests" / "scenarios" / "tolerances.json").value());
}

TEST(Accuracy, EveryPublishedRunIsPriced) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const ValidationReport report = report_of(shared);
  EXPECT_GE(report.rows.size(), 294U);
  for (const ValidationRow& row : report.rows) {
    EXPECT_TRUE(row.predicted.has_value()) << row.name << ": " << row.note;
  }
}

TEST(Accuracy, OfEachPublishedFileIsWithinItsClaim) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const Json claims = tolerances().at("claims");
  const ValidationReport report = report_of(shared);
  std::size_t claimed = 0;
  for (const FileSummary& file : report.files) {
    if (!claims.contains(file.file)) continue;
    ++claimed;
    EXPECT_LE(file.mape.value(), claims.at(file.file).get<double>()) << file.file;
  }
  EXPECT_EQ(claimed, claims.size()) << "a claimed file is not there";
}

// Tests the claim for unseen runs on runs of sources, or of networks, that no figure of the catalog
// was fitted to.
TEST(Accuracy, OfRunsThatNothingWasFittedToIsWithinItsClaim) {
  const fs::path folder = beside_this("unfitted_runs");
  std::map<bool, std::vector<PricedRun>> runs;  // by whether the network has experts
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto scenarios = read_scenarios(entry.path());
    ASSERT_TRUE(scenarios.has_value()) << scenarios.error().message;
    for (const Scenario& scenario : *scenarios) {
      PricedRun run = priced_run("unfitted", scenario);
      ASSERT_TRUE(run.run.has_value()) << entry.path() << " " << scenario.name;
      runs[run.run->job.job.model.experts > 0].push_back(std::move(run));
    }
  }
  EXPECT_GE(runs[false].size(), 140U);
  EXPECT_GE(runs[true].size(), 60U);
  const Json claims = tolerances().at("claimed_unfitted");
  for (auto& [experts, of_kind] : runs) {
    const char* kind = experts ? "experts" : "dense";
    EXPECT_LE(summarise(rows_of(std::move(of_kind))).all.mape.value(),
              claims.at(kind).get<double>())
        << kind;
  }
}

// Further runs, some with software or devices that no figure of the catalog was fitted to. Each
// source has a claim of its own.
TEST(Accuracy, OfFurtherRunsIsWithinTheClaimOfEachSource) {
  const fs::path folder = beside_this("further_runs");
  const Json claims = tolerances().at("claimed_further");
  std::set<std::string> sources;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto scenarios = read_scenarios(entry.path());
    ASSERT_TRUE(scenarios.has_value()) << scenarios.error().message;
    const std::string source = entry.path().stem().string();
    std::vector<PricedRun> runs;
    for (const Scenario& scenario : *scenarios) {
      runs.push_back(priced_run(source, scenario));
      ASSERT_TRUE(runs.back().run.has_value()) << source << ": " << scenario.name;
    }
    ASSERT_TRUE(claims.contains(source)) << source;
    EXPECT_LE(summarise(rows_of(std::move(runs))).all.mape.value(), claims.at(source).get<double>())
        << source;
    sources.insert(source);
  }
  EXPECT_EQ(sources.size(), claims.size());
}

// The A100's document states how many published runs without flash attention there are, and their
// error as scripts/batched-gemms found it.
TEST(Accuracy, OfRunsWithoutFlashAttentionIsWhatTheirBatchedGemmsSay) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const fs::path device = source_folder() / "scenarios/catalog/devices/a100-sxm-80gb.json";
  const std::string source =
      Json::parse(read_file(device).value())["rates"]["sources"]["batched_gemm"];
  std::vector<PricedRun> runs = published_runs(shared);
  std::erase_if(runs, [](const PricedRun& run) {
    return !run.run || run.run->job.job.training.stack.flash_attention;
  });
  EXPECT_NE(source.find(fmt::format(" on {} published runs of ", runs.size())), source.npos);
  const double error = summarise(rows_of(std::move(runs))).all.mape.value();
  const std::string words = "mean error of the step time ";
  const auto at = source.find(words);
  ASSERT_NE(at, source.npos) << source;
  double stated = 0;
  std::from_chars(source.data() + at + words.size(), source.data() + source.size(), stated);
  EXPECT_NEAR(100 * error, stated, 0.2);
}

TEST(Accuracy, OfPeakMemoryIsWithinItsClaim) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  EXPECT_LE(report_of(shared).all.memory_mape.value(),
            tolerances().at("claimed_memory").get<double>());
}

// All these runs were really made, so at most a few may be predicted not to fit.
TEST(Accuracy, OfWhatFitsIsWithinItsClaim) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const std::vector<ValidationRow> rows = rows_of(published_runs(shared));
  const auto refused = static_cast<double>(
      std::ranges::count_if(rows, [](const ValidationRow& row) { return !row.feasible; }));
  EXPECT_LE(refused / static_cast<double>(rows.size()),
            tolerances().at("claimed_not_to_fit").get<double>());
}

std::optional<Stack> catalogued(const std::vector<PricedRun>& runs, const std::string& name) {
  for (const PricedRun& run : runs) {
    if (!run.run) continue;
    const Stack& stack = run.run->job.job.training.stack;
    if (stack.name == name) return stack;
  }
  return std::nullopt;
}

// The intervals contain the claimed share of the runs that they were not fitted to.
void expect_claimed_share(const ErrorSummary& all) {
  const Json claim = tolerances().at("interval");
  EXPECT_NEAR(all.held_out_coverage.value(), claim.at("share").get<double>(),
              claim.at("margin").get<double>());
}

TEST(Accuracy, OfHeldOutRunsIsWithinItsClaim) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  std::vector<PricedRun> runs = published_runs(shared);
  hold_out_sources(runs);
  const ErrorSummary all = summarise(rows_of(std::move(runs))).all;
  expect_claimed_share(all);
  EXPECT_LE(all.held_out_mape.value(), tolerances().at("claimed_held_out").get<double>());
}

// The catalog's intervals are those that scripts/intervals would write today, to 2 % of a step
// time.
TEST(Accuracy, OfHeldOutRunsGivesTheIntervalsOfTheCatalog) {
  if (kSanitized)
    GTEST_SKIP() << "minutes of what OfHeldOutRunsIsWithinItsClaim does of fewer runs";
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  std::vector<PricedRun> runs = published_runs(shared);
  for (const char* folder : {"unfitted_runs", "further_runs"}) {
    std::ranges::move(runs_in(beside_this(folder)), std::back_inserter(runs));
  }
  const std::vector<IntervalFit> fits = hold_out_sources(runs);
  EXPECT_GE(fits.size(), 10U);  // nine stacks, and those without runs
  for (const IntervalFit& fit : fits) {
    const std::optional<Stack> stored = catalogued(runs, fit.stack);
    if (!stored) continue;
    const Stack fitted = with_interval(*stored, fit);
    EXPECT_NEAR(stored->interval_low, fitted.interval_low, 0.02) << fit.stack;
    EXPECT_NEAR(stored->interval_high, fitted.interval_high, 0.02) << fit.stack;
    EXPECT_NEAR(stored->interval_moe / fitted.interval_moe, 1, 0.2) << fit.stack;
    EXPECT_NEAR(stored->memory_interval_low, fitted.memory_interval_low, 0.02) << fit.stack;
    EXPECT_NEAR(stored->memory_interval_high, fitted.memory_interval_high, 0.02) << fit.stack;
    EXPECT_EQ(stored->evidence.runs, fitted.evidence.runs) << fit.stack;
    EXPECT_EQ(stored->evidence.devices, fitted.evidence.devices) << fit.stack;
    EXPECT_EQ(stored->evidence.sequence_length, fitted.evidence.sequence_length) << fit.stack;
  }
  expect_claimed_share(summarise(rows_of(std::move(runs))).all);
}

TEST(Accuracy, OfTheOrderOfPlansIsWithinItsClaim) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const Json claim = tolerances().at("claimed_order");
  double tau = 0;
  int ranked = 0;
  for (const PlanGroup& group : report_of(shared).groups) {
    if (group.one_release) {
      EXPECT_LE(group.regret, claim.at("regret_of_one_release").get<double>())
          << group.plans.front();
    }
    if (!group.kendall_tau) continue;
    tau += *group.kendall_tau;
    ++ranked;
  }
  ASSERT_GT(ranked, 0);
  EXPECT_GE(tau / ranked, claim.at("kendall_tau").get<double>());
}

TEST(Accuracy, OfIntervalsHasItsProvenanceInEveryStack) {
  for (const auto& entry :
       fs::directory_iterator(source_folder() / "scenarios" / "catalog" / "stacks")) {
    const Json stack = Json::parse(read_file(entry.path()).value());
    if (stack.at("name") == "ideal") continue;  // a bound: its interval is exact
    for (const char* key : {"interval_low", "interval_high", "interval_moe", "memory_interval_low",
                            "memory_interval_high"}) {
      EXPECT_TRUE(stack.contains(key)) << entry.path() << " " << key;
      EXPECT_TRUE(stack.at("sources").contains(key)) << entry.path() << " " << key;
    }
  }
}

}  // namespace
}  // namespace trainyard
