// What the optimizer keeps for each weight, read from the program's buffers.
#include <gtest/gtest.h>

#include <set>

#include "model/program/lower.h"
#include "model/workload/optimizer.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

// Over all buffers of optimizer states: whether they keep the weight in full precision.
std::set<bool> keep_weights(std::string_view precision, std::string_view optimizer,
                            int zero_stage = 0) {
  Training training = tiny_training();
  training.precision = *find_precision_recipe(precision);
  training.optimizer = *find_optimizer(optimizer);
  training.stack.keeps_weight_copy = zero_stage < 3;
  PlanRequest request;
  request.data_parallel = 2;
  request.zero_stage = zero_stage;
  const Setting setting = tiny_setting(tiny_llama(false), training, request);
  const auto program = lower(setting.model, setting.training, setting.plan);
  EXPECT_TRUE(program);
  std::set<bool> found;
  for (const ProgramBuffer& buffer : program->buffers) {
    if (buffer.role == BufferRole::optimizer) found.insert(buffer.keeps_weights);
  }
  return found;
}

TEST(OptimizerStates, KeepTheWeightInFullWhereItIsStoredInFewerBits) {
  EXPECT_EQ(keep_weights("bf16", "adamw"), std::set{true});
  EXPECT_EQ(keep_weights("fp32", "adamw"), std::set{false});
}

// Muon's second moment at the ends of the network is not a weight.
TEST(OptimizerStates, KeepNoneForAMomentMore) {
  EXPECT_EQ(keep_weights("fp32", "muon"), std::set{false});
}

// The weights themselves are stored in full precision, in parts, and cast where they are read.
TEST(OptimizerStates, KeepNoneBesideWeightsInFp32) {
  EXPECT_EQ(keep_weights("bf16", "adamw", 3), std::set{false});
}

}  // namespace
}  // namespace trainyard
