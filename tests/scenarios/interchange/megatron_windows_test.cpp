// How Megatron-LM's arguments say which layers have a window.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "scenarios/interchange/megatron/megatron.h"
#include "tests/scenarios/interchange/foreign.h"
#include "tests/scenarios/interchange/plans.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;

// is_layer_window_attention in megatron/core/transformer/utils.py: the list has 1 for a layer with
// a window.
TEST(MegatronExport, SaysTheLeadingLayersWithoutAWindowAsAListAndReadsItBack) {
  Scenario scenario = scenario_of("llama-3.1-8b", "megatron-core", 2);
  scenario.job.model.sliding_window = 4096;
  for (const auto& [leading, every, text] :
       {std::tuple(24, 0, "'([0]*24+[1]*8)'"), std::tuple(29, 2, "'([0]*30+[1]*1+[0]*1)'")}) {
    scenario.job.model.full_attention_layers = leading;
    scenario.job.model.full_attention_every = every;
    const Plan plan =
        make_plan({}, scenario.job.model, scenario.job.cluster, scenario.job.training).value();
    const auto exported = export_megatron(scenario, plan);
    ASSERT_TRUE(exported.has_value()) << line_of(exported.error());
    const std::string& arguments = exported->files.front().text;
    EXPECT_THAT(arguments, HasSubstr(std::string("--window-attn-skip-freq ") + text));
    const auto read = import_megatron(foreign(arguments), {.node = "dgx-h100-80gb", .nodes = 2});
    ASSERT_TRUE(read.has_value()) << line_of(read.error());
    const Transformer model = parse_scenario(read->document, "read").value().job.model;
    for (int layer = 0; layer < 32; ++layer) {
      EXPECT_EQ(layer_kind(model, layer), layer_kind(scenario.job.model, layer)) << layer;
    }
  }
}

TEST(MegatronImport, RefusesALayerListThatNoLeadingLayersAndPeriodMake) {
  const auto refusal = [](const std::string& list) {
    const auto read = import_megatron(
        foreign("--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
                "--global-batch-size 64 --vocab-size 100 --bf16 --window-size 16,0 "
                "--window-attn-skip-freq " +
                list),
        {.node = "dgx-h100-80gb", .nodes = 1});
    return read ? "accepted" : line_of(read.error());
  };
  EXPECT_EQ(refusal("'([1]*3+[0])'"), "accepted");
  EXPECT_THAT(refusal("'[1,0,0,1]'"), HasSubstr("leading layers without a window"));
  EXPECT_THAT(refusal("'[1,0,1]'"), HasSubstr("for 4 layers"));
}

}  // namespace
}  // namespace trainyard
