// Gradients reduced, and updated weights gathered, in buckets of several units.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "model/program/lower.h"
#include "model/program/view.h"
#include "model/schedule/schedule.h"
#include "tests/model/program/equivalence.h"

namespace trainyard {
namespace {

// One unit, about two layers of the tiny networks, or all of a chunk.
constexpr std::array kLimits = {1.0, 700.0, 1e9};

Training with_buckets(double limit) {
  Training training = tiny_training();
  training.stack.bucket_parameters = limit;
  return training;
}

PlanRequest overlapped(int zero_stage) {
  PlanRequest request;
  request.data_parallel = 2;
  request.zero_stage = zero_stage;
  request.overlap.data_parallel = true;
  return request;
}

TEST(BucketedProgram, IsTheUnshardedOneUnderEverySchedule) {
  for (const Schedule* schedule : schedules()) {
    for (const double limit : kLimits) {
      for (const bool tied : {false, true}) {
        PlanRequest request = overlapped(tied ? 0 : 1);
        request.schedule = schedule->name;
        request.pipeline_parallel = 2;
        request.virtual_stages = schedule->needs_chunks ? 2 : 1;
        expect_equivalent(tiny_setting(tiny_llama(tied), with_buckets(limit), request),
                          fmt::format("{} limit {} tied {}", schedule->name, limit, tied), 4);
      }
    }
  }
}

TEST(BucketedProgram, OfExpertsAndOfGroupsIsTheUnshardedOne) {
  for (const double limit : kLimits) {
    PlanRequest experts = overlapped(1);
    experts.data_parallel = 4;
    experts.expert_parallel = 2;
    expect_equivalent(tiny_setting(tiny_moe(), with_buckets(limit), experts),
                      fmt::format("experts, limit {}", limit), 6);
    PlanRequest groups = overlapped(1);
    groups.data_parallel = 4;
    groups.tensor_parallel = 2;
    groups.sharding_group = 2;
    expect_equivalent(tiny_setting(tiny_gpt(true), with_buckets(limit), groups),
                      fmt::format("groups, limit {}", limit), 6);
  }
}

// Messages of a stage, and the bytes of all of them.
struct Moved {
  int messages = 0;
  Bytes bytes;
};
Moved moved(const Program& program, int stage, OperationKind kind) {
  Moved all;
  for (const IssuedOperation issued : operations_of(program, stage)) {
    if (issued.operation->kind != kind || issued.operation->group != Group::dense_shard) continue;
    ++all.messages;
    all.bytes += issued.operation->message;
  }
  return all;
}

// Llama's four layers on two stages of two chunks, with one end of the network on each stage. Of
// the first chunk each unit is a bucket, or all are one; of every other chunk all are one. The
// bytes are those of the units one by one.
TEST(BucketedProgram, HasSeveralBucketsInTheFirstChunkOnly) {
  PlanRequest request = overlapped(1);
  request.schedule = "interleaved-1f1b";
  request.pipeline_parallel = 2;
  request.virtual_stages = 2;
  const auto program_of = [&](double limit) {
    const Setting setting = tiny_setting(tiny_llama(false), with_buckets(limit), request);
    return lower(setting.model, setting.training, setting.plan).value();
  };
  const Program apart = program_of(0), small = program_of(1), large = program_of(1e9);
  for (const auto kind : {OperationKind::reduce_scatter, OperationKind::all_gather}) {
    for (const int stage : {0, 1}) {
      const Moved units = moved(apart, stage, kind);
      EXPECT_EQ(units.messages, 3);
      EXPECT_EQ(moved(small, stage, kind).messages, stage == 0 ? 3 : 2);
      EXPECT_EQ(moved(large, stage, kind).messages, 2);
      EXPECT_DOUBLE_EQ(moved(small, stage, kind).bytes.value(), units.bytes.value());
      EXPECT_DOUBLE_EQ(moved(large, stage, kind).bytes.value(), units.bytes.value());
    }
  }
}

std::vector<double> reduced_parameters(double limit) {
  const Setting setting = tiny_setting(tiny_llama(false), with_buckets(limit), overlapped(1));
  const Program program = lower(setting.model, setting.training, setting.plan).value();
  std::vector<double> all;
  for (const IssuedOperation issued : operations_of(program, 0)) {
    if (issued.operation->kind != OperationKind::reduce_scatter) continue;
    all.push_back(issued.operation->message.value() / reduced_gradient_bytes(setting.training));
  }
  return all;
}

// The head, four layers and the embedding: a bucket takes in one after the other until it is full.
TEST(BucketedProgram, FillsBucketsToTheLimit) {
  const std::vector<double> units = reduced_parameters(1);
  ASSERT_EQ(units.size(), 6U);
  std::vector<double> filled = {0};
  for (const double unit : units) {
    if (filled.back() >= kLimits[1]) filled.push_back(0);
    filled.back() += unit;
  }
  ASSERT_GT(filled.size(), 1U);
  ASSERT_LT(filled.size(), 6U);
  EXPECT_EQ(reduced_parameters(kLimits[1]), filled);
}

}  // namespace
}  // namespace trainyard
