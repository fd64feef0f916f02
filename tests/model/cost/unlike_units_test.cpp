#include "model/cost/sharding/unlike_units.h"

#include <gtest/gtest.h>

#include <random>

namespace trainyard {
namespace {

// A dense layer of 3 s and an MoE layer of 4 s, in turn; 1 s of the MoE layer is attention. Weights
// are gathered in 1 s, those of experts in 10 s more.
constexpr UnlikeUnit kDense{.work = Seconds(3), .gather = Seconds(1)};
constexpr UnlikeUnit kMoe{.work = Seconds(4),
                          .before_experts = Seconds(1),
                          .gather = Seconds(1),
                          .gather_of_experts = Seconds(10)};

// The first dense layer runs from 1 s to 4. Beside it come the weights of the MoE layer:
// attention's until 2 s, the experts' until 12 s. So attention runs from 4 s to 5 and the experts
// from 12 to 15. The second dense layer's weights come until 13 s, and it runs from 15 s to 18.
// Beside it come those of the last layer, until 16 s and 26 s. That layer ends at 29 s; 14 s of all
// are work.
TEST(PassOfUnlikeUnits, WaitsForExpertsThatADenseLayerDoesNotHide) {
  PassOfUnlikeUnits pass;
  for (const UnlikeUnit& unit : {kDense, kMoe, kDense, kMoe}) pass.add(unit);
  EXPECT_NEAR(pass.shown().all.value(), 29 - 14, 1e-12);
  EXPECT_NEAR(pass.shown().at_ends.value(), 1, 1e-12);
}

// Backward. The last MoE layer recomputes its attention from 1 s on, has its experts' weights at 11
// s and ends at 14 s. Its reduction of 10 s goes behind the next weights, from 14 s to 24. Then
// come the weights of the other MoE layer, from 24 s to 35, while the dense layer runs from 14 s to
// 17. That MoE layer runs from 25 s to 38. The first dense layer runs from 38 s to 41, beside the
// MoE layer's reduction until 48 s; its own reduction of 1 s is the last.
TEST(PassOfUnlikeUnits, ReducesBeforeItGathers) {
  UnlikeUnit dense = kDense, moe = kMoe;
  dense.reduce = Seconds(1);
  moe.reduce = Seconds(10);
  PassOfUnlikeUnits pass;
  for (const UnlikeUnit& unit : {moe, dense, moe, dense}) pass.add(unit);
  EXPECT_NEAR(pass.shown().all.value(), 49 - 14, 1e-12);
  EXPECT_NEAR(pass.shown().at_ends.value(), 10 + (49 - 41), 1e-12);
}

TEST(PassOfUnlikeUnits, OfEqualLayersIsTheClosedForm) {
  std::mt19937 random(4);
  const auto some = [&] { return Seconds(static_cast<double>(random() % 8)); };
  for (int draw = 0; draw < 2000; ++draw) {
    UnitSequence units{.layer = {some(), some() + Seconds(1), some()}};
    units.layers = 1 + static_cast<int>(random() % 7);
    PassOfUnlikeUnits pass;
    for (int layer = 0; layer < units.layers; ++layer) {
      pass.add(
          {.work = units.layer.work, .gather = units.layer.gather, .reduce = units.layer.reduce});
    }
    const ShownInPass expected = shown_in_pass(units);
    ASSERT_NEAR(pass.shown().all.value(), expected.all.value(), 1e-9) << draw;
    ASSERT_NEAR(pass.shown().at_ends.value(), expected.at_ends.value(), 1e-9) << draw;
  }
}

}  // namespace
}  // namespace trainyard
