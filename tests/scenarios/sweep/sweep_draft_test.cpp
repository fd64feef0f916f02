// A sweep as typed in a window, compared with the same sweep as a document.
#include "scenarios/sweep/sweep_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/sweep/swept_keys.h"
#include "tests/scenarios/sweep/sweeps.h"

namespace trainyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string scenario() { return R"({"trainyard": "scenario/1", )" + base_scenario().substr(1); }

std::vector<std::string> drafted(const SweepDraft& draft) {
  const auto sweep = drafted_sweep(scenario(), sweep_folder() / "a.json", draft);
  EXPECT_TRUE(sweep.has_value()) << sweep.error().where << ": " << sweep.error().message;
  return sweep ? all_overrides(*sweep) : std::vector<std::string>();
}

std::vector<std::string> written(const std::string& keys) {
  return all_overrides(*sweep_from(keys));
}

TEST(SweepDraft, ListsAndRangesAreTheDocuments) {
  EXPECT_EQ(drafted({.axes = {{.key = "plan.tensor_parallel", .values = "1, 2, 4"},
                              {.key = "cluster.node.nic_bandwidth",
                               .values = "100 Gbit/s .. 800 Gbit/s",
                               .steps = 4,
                               .scale = Scale::geometric}}}),
            written(R"("vary": [{"key": "plan.tensor_parallel", "values": [1, 2, 4]},
              {"key": "cluster.node.nic_bandwidth", "from": "100 Gbit/s", "to": "800 Gbit/s",
               "steps": 4, "scale": "geometric"}])"));
}

TEST(SweepDraft, TextNeedsNoQuotesAndAListMayHaveBrackets) {
  const auto expected =
      written(R"("vary": [{"key": "cluster.node", "values": ["dgx-h100-80gb", "dgx-a100-80gb"]}])");
  for (const char* typed : {"dgx-h100-80gb, dgx-a100-80gb", R"("dgx-h100-80gb", "dgx-a100-80gb")",
                            R"(["dgx-h100-80gb", "dgx-a100-80gb"])"}) {
    EXPECT_EQ(drafted({.axes = {{.key = "cluster.node", .values = typed}}}), expected) << typed;
  }
}

TEST(SweepDraft, KeysThatGoTogetherAreAZip) {
  EXPECT_EQ(
      drafted(
          {.axes = {{.key = "plan.tensor_parallel", .values = "1, 2"},
                    {.key = "cluster.nodes", .values = "4, 8"},
                    {.key = "training.global_batch", .values = "64, 128", .with_previous = true}}}),
      written(R"("vary": [{"key": "plan.tensor_parallel", "values": [1, 2]},
              {"zip": [{"key": "cluster.nodes", "values": [4, 8]},
                       {"key": "training.global_batch", "values": [64, 128]}]}])"));
}

TEST(SweepDraft, DrawsAndConditionsAreTheDocuments) {
  EXPECT_EQ(drafted({.axes = {{.key = "cluster.nodes", .values = "1 .. 64"}},
                     .combine = Combination::random,
                     .samples = 5,
                     .seed = 3}),
            written(R"("vary": [{"key": "cluster.nodes", "from": 1, "to": 64}],
              "combine": "random", "samples": 5, "seed": 3)"));
  EXPECT_EQ(drafted({.axes = {{.key = "cluster.nodes", .values = "1, 2, 4"}},
                     .where = "cluster.nodes > 1"}),
            written(R"("vary": [{"key": "cluster.nodes", "values": [1, 2, 4]}],
              "where": ["cluster.nodes > 1"])"));
}

TEST(SweepDraft, IsRefusedWithTheAxisAndTheValue) {
  const auto error_of = [](const DraftAxis& axis) {
    const auto sweep = drafted_sweep(scenario(), "a.json", {.axes = {axis}});
    return sweep ? "none" : sweep.error().where + ": " + sweep.error().message;
  };
  EXPECT_THAT(error_of({.key = "plan.tensors", .values = "1"}), HasSubstr("tensors"));
  EXPECT_THAT(error_of({.key = "plan.tensor_parallel", .values = "2, two"}), HasSubstr("\"two\""));
  EXPECT_THAT(error_of({.key = "cluster.nodes", .values = ""}), HasSubstr("/vary/0"));
  EXPECT_THAT(error_of({.key = "cluster.nodes", .values = "1 .. 4"}), HasSubstr("steps"));
  EXPECT_FALSE(drafted_sweep("{ oops", "a.json", {}).has_value());
  EXPECT_FALSE(drafted_sweep("[]", "a.json", {}).has_value());
}

// A draft built from a document asks for the same points.
TEST(SweepDraft, OfADocumentIsTheDocument) {
  for (const std::string keys :
       {R"("vary": [{"key": "plan.tensor_parallel", "values": [1, 2, 4]},
          {"key": "cluster.node.nic_bandwidth", "from": "100 Gbit/s", "to": "800 Gbit/s",
           "steps": 4, "scale": "geometric"}],
          "where": ["plan.tensor_parallel > 1 or cluster.nodes > 2", "plan.tensor_parallel < 4"])",
        R"("vary": [{"zip": [{"key": "/cluster/node", "values": ["dgx-h100-80gb", "dgx-a100-80gb"]},
          {"key": "cluster.nodes", "values": [4, 8]}]}], "combine": "one-at-a-time")",
        R"("vary": [{"key": "cluster.nodes", "from": 1, "to": 64}],
          "combine": "random", "samples": 5, "seed": 3, "evaluate": "plan")"}) {
    const auto file = write_sweep_file("opened.json", sweep_text(keys));
    const auto opened = opened_sweep(file, sweep_folder() / "scenario.json");
    ASSERT_TRUE(opened.has_value()) << opened.error().where << ": " << opened.error().message;
    const auto again =
        drafted_sweep(opened->scenario, sweep_folder() / "scenario.json", opened->draft);
    ASSERT_TRUE(again.has_value()) << again.error().where << ": " << again.error().message;
    const auto sweep = read_sweep(file);
    EXPECT_EQ(all_overrides(*again), all_overrides(*sweep)) << keys;
    EXPECT_EQ(again->base, sweep->base) << keys;
    EXPECT_EQ(again->document.evaluate, sweep->document.evaluate) << keys;
  }
}

TEST(SweepDraft, OfADocumentThatNoWindowShowsIsRefused) {
  for (const auto& [keys, word] :
       {std::pair(R"("vary": [{"key": "cluster.nodes", "values": [4]}], "evaluate": "run")", "run"),
        std::pair(R"("vary": [{"key": "cluster.nodes", "values": [4]}], "objective": "cost")",
                  "objective"),
        std::pair(R"("vary": [{"key": "cluster.nodes", "from": 1, "to": 9}], "combine": "random",
                      "samples": 9, "seed": 5000000000)",
                  "seed"),
        std::pair(R"("vary": [{"key": "name", "values": ["a..b"]}])", "two dots")}) {
    const auto opened = opened_sweep(write_sweep_file("opened.json", sweep_text(keys)), "a.json");
    ASSERT_FALSE(opened.has_value()) << keys;
    EXPECT_THAT(opened.error().message, HasSubstr("allowed in a window")) << keys;
    EXPECT_THAT(opened.error().where + opened.error().message, HasSubstr(word)) << keys;
  }
}

// A sweep can look up every key that the table offers.
TEST(SweepDraft, OffersKeysThroughNames) {
  std::vector<std::string> names;
  for (const SweepKey& key : sweep_keys()) names.push_back(key.name);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"model", "cluster.node", "cluster.nodes",
                                              "cluster.node.nic_bandwidth", "plan.micro_batch",
                                              "training.global_batch", "price"}));
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(SweptKeys, OfListsAreKnownBeforeAnyPoint) {
  const auto sweep = sweep_from(R"("vary": [{"key": "cluster.nodes", "values": [4, 8, 4]},
    {"key": "cluster.node.nic_bandwidth", "values": ["200 Gbit/s", "400 Gbit/s"]}])");
  SweptKeys keys(*sweep);
  ASSERT_EQ(keys.keys().size(), 2u);
  EXPECT_THAT(keys.keys()[0].values, ElementsAre("4", "8"));
  EXPECT_THAT(keys.keys()[1].values, ElementsAre("200 Gbit/s", "400 Gbit/s"));
  EXPECT_THAT(keys.places(3), ElementsAre(1, 1));
  EXPECT_THAT(keys.places(4), ElementsAre(0, 0));  // the second 4
}

TEST(SweptKeys, OfTheScenarioItselfAreItsOwn) {
  const auto sweep = sweep_from(R"("combine": "one-at-a-time",
    "vary": [{"key": "cluster.nodes", "values": [8]}])");
  SweptKeys keys(*sweep);
  EXPECT_THAT(keys.keys()[0].values, ElementsAre("4", "8"));  // four nodes is what it has
  EXPECT_THAT(keys.places(0), ElementsAre(0));
  EXPECT_THAT(keys.places(1), ElementsAre(1));
}

TEST(SweptKeys, OfDrawnRangesComeWithTheirPoints) {
  const auto sweep = sweep_from(R"("combine": "random", "samples": 3,
    "vary": [{"key": "training.global_batch", "from": 1, "to": 1000000}])");
  SweptKeys keys(*sweep);
  EXPECT_FALSE(keys.keys()[0].is_listed);
  EXPECT_TRUE(keys.keys()[0].values.empty());
  EXPECT_THAT(keys.places(2), ElementsAre(0));
  EXPECT_EQ(R"({"training.global_batch":)" + keys.keys()[0].values[0] + "}",
            all_overrides(*sweep)[2]);
}

}  // namespace
}  // namespace trainyard
