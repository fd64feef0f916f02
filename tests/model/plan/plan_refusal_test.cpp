// What a plan is refused for. Each test is just beyond a limit, and shows that the limit itself is
// legal.
#include <gtest/gtest.h>

#include <limits>

#include "model/plan/plan.h"
#include "tests/model/plan/question.h"

namespace trainyard {
namespace {

constexpr int kHuge = std::numeric_limits<int>::max();

TEST(PlanRefusal, TensorParallelThatDoesNotDivideTheHeads) {
  PlanQuestion question;  // 32 heads
  question.request.tensor_parallel = 3;
  EXPECT_EQ(
      question.refusal(),
      "/plan/tensor_parallel: found 3, allowed a divisor of the 32 attention heads; nearest 2");
  question.request.tensor_parallel = 32;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.tensor_parallel = 64;
  EXPECT_EQ(
      question.refusal(),
      "/plan/tensor_parallel: found 64, allowed a divisor of the 32 attention heads; nearest 32");
}

TEST(PlanRefusal, NearestTensorParallelFillsTheClusterWhenDataParallelIsNamed) {
  PlanQuestion question;
  question.request.tensor_parallel = 3;
  question.request.data_parallel = 8;
  EXPECT_EQ(
      question.refusal(),
      "/plan/tensor_parallel: found 3, allowed a divisor of the 32 attention heads; nearest 8");
}

TEST(PlanRefusal, AScheduleThatTheStackDoesNotRun) {
  PlanQuestion question;
  question.training.stack.name = "a stack";
  question.training.stack.schedules = {"1f1b", "interleaved-1f1b"};
  question.request.pipeline_parallel = 4;
  EXPECT_EQ(question.refusal(), "legal");  // 1f1b
  question.request.schedule = "zb-h1";
  EXPECT_EQ(question.refusal(),
            "/plan/schedule: found zb-h1, which a stack does not run, allowed 1f1b, "
            "interleaved-1f1b");
  question.request.pipeline_parallel = 1;  // without a pipeline there is nothing to run
  EXPECT_EQ(question.refusal(), "legal");
  question.request.pipeline_parallel = 4;
  question.training.stack.schedules.clear();  // nothing said
  EXPECT_EQ(question.refusal(), "legal");
}

TEST(PlanRefusal, ZeroOnAStackThatHasNone) {
  PlanQuestion question;
  question.training.stack.name = "a stack";
  question.training.stack.zero_stack = "another";
  question.request.zero_stage = 0;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.zero_stage = 1;
  EXPECT_EQ(question.refusal(),
            "/plan/zero_stage: found 1, allowed none with a stack, which has no ZeRO; another has "
            "it");
  question.request.zero_stage.reset();
  question.request.sharding_group = 2;
  EXPECT_EQ(question.refusal(),
            "/plan/sharding_group: found 2, allowed none with a stack, which has no ZeRO; another "
            "has it");
  question.training.stack.zero_stack.clear();
  EXPECT_EQ(question.refusal(), "legal");
}

TEST(PlanRefusal, KvHeadsThatNeitherSplitNorReplicate) {
  PlanQuestion question;
  question.model.kv_heads = 6;
  question.model.attention_heads = 48;
  question.request.tensor_parallel = 4;
  EXPECT_EQ(question.refusal(),
            "/plan/tensor_parallel: found 4, allowed a divisor or a multiple of the 6 KV heads; "
            "nearest 2");
  question.model.kv_heads = 2;  // g < t: replicated
  EXPECT_EQ(question.refusal(), "legal");
}

TEST(PlanRefusal, TensorParallelThatDoesNotDivideTheMlp) {
  PlanQuestion question;
  question.model.ffn_size = 14340;  // 4 · 3585
  question.request.tensor_parallel = 8;
  EXPECT_EQ(question.refusal(),
            "/plan/tensor_parallel: found 8, allowed a divisor of ffn_size 14340; nearest 4");
  question.make_experts();  // experts in every layer: no dense MLP is left
  EXPECT_EQ(question.refusal(), "legal");
  question.model.shared_experts = 1;
  question.model.shared_expert_ffn_size = 2052;
  EXPECT_EQ(question.refusal(),
            "/plan/tensor_parallel: found 8, allowed a divisor of the shared experts' width 2052; "
            "nearest 4");
}

TEST(PlanRefusal, DegreesThatDoNotFillTheCluster) {
  PlanQuestion question;  // 64 devices
  question.request.pipeline_parallel = 3;
  EXPECT_EQ(question.refusal(),
            "/plan/pipeline_parallel: found 3, allowed a divisor of 64 = 64 devices / "
            "(tensor_parallel · context_parallel); nearest 2");
  question.request.pipeline_parallel = 2;
  question.request.context_parallel = 128;
  EXPECT_EQ(question.refusal(),
            "/plan/context_parallel: found 128, allowed a divisor of 64 = 64 devices / "
            "tensor_parallel; nearest 64");
  question.request.context_parallel = 1;
  question.request.data_parallel = 16;
  EXPECT_EQ(question.refusal(),
            "/plan/data_parallel: found 16, allowed 32 = 64 devices / (tensor_parallel · "
            "context_parallel · pipeline_parallel)");
  question.request.data_parallel = 32;
  EXPECT_EQ(question.refusal(), "legal");
}

TEST(PlanRefusal, TensorParallelThatDoesNotDivideTheDevices) {
  PlanQuestion question;
  question.cluster.nodes = 3;  // 24 devices
  question.request.tensor_parallel = 16;
  EXPECT_EQ(question.refusal(),
            "/plan/tensor_parallel: found 16, allowed a divisor of the 24 devices; nearest 8");
}

TEST(PlanRefusal, NumbersThatAreNotPositive) {
  const auto refused = [](auto set) {
    PlanQuestion question;
    question.make_experts();
    set(question.request);
    return question.refusal();
  };
  EXPECT_EQ(refused([](PlanRequest& r) { r.tensor_parallel = 0; }),
            "/plan/tensor_parallel: found 0, allowed 1 or more");
  EXPECT_EQ(refused([](PlanRequest& r) { r.context_parallel = -1; }),
            "/plan/context_parallel: found -1, allowed 1 or more");
  EXPECT_EQ(refused([](PlanRequest& r) { r.pipeline_parallel = 0; }),
            "/plan/pipeline_parallel: found 0, allowed 1 or more");
  EXPECT_EQ(refused([](PlanRequest& r) { r.virtual_stages = 0; }),
            "/plan/virtual_stages: found 0, allowed 1 or more");
  EXPECT_EQ(refused([](PlanRequest& r) { r.data_parallel = 0; }),
            "/plan/data_parallel: found 0, allowed 1 or more");
  EXPECT_EQ(refused([](PlanRequest& r) { r.expert_parallel = 0; }),
            "/plan/expert_parallel: found 0, allowed 1 or more");
  EXPECT_EQ(refused([](PlanRequest& r) { r.expert_tensor_parallel = 0; }),
            "/plan/expert_tensor_parallel: found 0, allowed 1 or more");
  EXPECT_EQ(refused([](PlanRequest& r) { r.micro_batch = 0; }),
            "/plan/micro_batch: found 0, allowed 1 or more");
  EXPECT_EQ(refused([](PlanRequest& r) { r.sharding_group = 0; }),
            "/plan/sharding_group: found 0, allowed 1 or more");
}

// Every product of two or three of these keys overflows an int, and of three an int64.
TEST(PlanRefusal, HugeNumbersWithoutOverflow) {
  PlanQuestion question;
  PlanRequest& r = question.request;
  r.tensor_parallel = 32;
  r.context_parallel = r.pipeline_parallel = kHuge;
  r.virtual_stages = kHuge;
  EXPECT_TRUE(question.refusal().starts_with("/plan/context_parallel: found 2147483647"));
  r = {};
  r.pipeline_parallel = kHuge;
  r.data_parallel = kHuge;
  r.micro_batch = kHuge;
  EXPECT_TRUE(question.refusal().starts_with("/plan/pipeline_parallel: found 2147483647"));
  r = {};
  r.micro_batch = kHuge;
  question.training.global_batch = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(question.refusal().starts_with("/training/global_batch: found 9223372036854775807"));
  r = {};
  question.training.global_batch = 64;
  r.virtual_stages = kHuge;
  EXPECT_TRUE(question.refusal().starts_with("/plan/virtual_stages: found 2147483647"));
}

TEST(PlanRefusal, MoreDevicesThanRanksCanBeCounted) {
  PlanQuestion question;
  question.cluster.devices_per_node = 1 << 16;
  question.cluster.nodes = 1 << 15;  // 2^31
  EXPECT_EQ(question.refusal(),
            "/cluster/nodes: found 2147483648 devices, allowed 2147483647 at most");
}

TEST(PlanRefusal, SequencesThatContextParallelismCannotCut) {
  PlanQuestion question;
  question.training.sequence_length = 8200;  // 8 · 1025
  question.request.context_parallel = 8;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.context_parallel = 16;
  EXPECT_EQ(question.refusal(),
            "/plan/context_parallel: found 16, allowed a divisor of sequence_length 8200; "
            "nearest 8");
}

TEST(PlanRefusal, UlyssesBeyondTheHeadsOfARank) {  // handbook §4: c ≤ a/t
  PlanQuestion question;                           // a = 32
  question.request.tensor_parallel = 8;
  question.request.context_parallel = 4;
  question.request.context_parallel_algorithm = ContextAlgorithm::ulysses;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.context_parallel = 8;
  EXPECT_EQ(question.refusal(),
            "/plan/context_parallel: found 8, allowed a divisor of the 4 attention heads of a "
            "tensor-parallel rank (ulysses); nearest 4");
  question.request.context_parallel_algorithm = ContextAlgorithm::ring;
  EXPECT_EQ(question.refusal(), "legal");
}

TEST(PlanRefusal, TokensThatSequenceParallelismCannotSplit) {
  PlanQuestion question;
  question.training.sequence_length = 4100;  // 4 · 1025
  question.request.tensor_parallel = 4;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.tensor_parallel = 8;
  EXPECT_EQ(question.refusal(),
            "/plan/tensor_parallel: found 8, allowed a divisor of the 4100 tokens of a "
            "context-parallel rank (sequence_parallel; false does without); nearest 4");
  question.request.sequence_parallel = false;
  EXPECT_EQ(question.refusal(), "legal");
}

TEST(PlanRefusal, ExpertsOfADenseNetwork) {
  PlanQuestion question;
  question.request.expert_parallel = 2;
  EXPECT_EQ(question.refusal(),
            "/plan/expert_parallel: found 2, allowed 1: the network has no experts");
  question.request.expert_parallel = 1;
  question.request.expert_tensor_parallel = 2;
  EXPECT_EQ(question.refusal(),
            "/plan/expert_tensor_parallel: found 2, allowed 1: the network has no experts");
}

TEST(PlanRefusal, ExpertsThatDoNotSplit) {
  PlanQuestion question;
  question.make_experts();  // 16 experts, 64 ranks
  question.request.expert_parallel = 16;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.expert_parallel = 32;
  EXPECT_EQ(question.refusal(),
            "/plan/expert_parallel: found 32, allowed a divisor of the 16 experts and of 64 = "
            "tensor_parallel · context_parallel · data_parallel / expert_tensor_parallel; "
            "nearest 16");
  question.request.pipeline_parallel = 8;  // 8 ranks a stage
  question.request.expert_parallel = 16;
  EXPECT_TRUE(question.refusal().ends_with("nearest 8"));
  question.request.expert_parallel = 1;
  question.request.expert_tensor_parallel = 16;
  EXPECT_EQ(question.refusal(),
            "/plan/expert_tensor_parallel: found 16, allowed a divisor of expert_ffn_size 2048 and "
            "of the 8 ranks of a stage; nearest 8");
}

TEST(PlanRefusal, ExpertsWithoutSequenceParallelism) {
  PlanQuestion question;
  question.make_experts();
  question.request.tensor_parallel = 2;
  question.request.sequence_parallel = false;
  EXPECT_EQ(question.refusal(),
            "/plan/sequence_parallel: found false, allowed true: experts with tensor_parallel 2 "
            "need it");
  question.request.tensor_parallel = 1;
  EXPECT_EQ(question.refusal(), "legal");
}

TEST(PlanRefusal, BatchesThatDoNotSplit) {
  PlanQuestion question;                 // B = 64
  question.request.tensor_parallel = 8;  // D = 8
  question.request.micro_batch = 8;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.micro_batch = 3;
  EXPECT_EQ(question.refusal(),
            "/plan/micro_batch: found 3, allowed a divisor of 8 = global_batch / data_parallel; "
            "nearest 2");
  question.request.micro_batch = 16;
  EXPECT_EQ(question.refusal(),
            "/plan/micro_batch: found 16, allowed a divisor of 8 = global_batch / data_parallel; "
            "nearest 8");
  question.request.micro_batch = 2;
  question.training.global_batch = 60;
  EXPECT_EQ(question.refusal(),
            "/training/global_batch: found 60, allowed a multiple of 16 = micro_batch · "
            "data_parallel; nearest 64");
  question.training.global_batch = 4;
  EXPECT_TRUE(question.refusal().ends_with("nearest 16"));
}

TEST(PlanRefusal, FewerLayersThanChunksLessTwo) {
  PlanQuestion question;
  question.request.pipeline_parallel = 8;
  question.model.layers = 6;  // p·v − 2
  EXPECT_EQ(question.refusal(), "legal");
  question.model.layers = 5;
  EXPECT_EQ(question.refusal(),
            "/plan/pipeline_parallel: found 8, allowed 7 at most: 5 layers; nearest 4");
  question.model.layers = 14;
  question.request.virtual_stages = 2;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.virtual_stages = 3;
  EXPECT_EQ(question.refusal(),
            "/plan/virtual_stages: found 3, allowed 2 at most: 14 layers on 8 stages");
}

TEST(PlanRefusal, SchedulesThatDoNotExistOrDoNotSuit) {
  PlanQuestion question;
  question.request.pipeline_parallel = 4;
  question.request.schedule = "1f2b";
  EXPECT_EQ(question.refusal().substr(0, 38), "/plan/schedule: found \"1f2b\", allowed ");
  question.request.schedule = "1f1b";
  question.request.virtual_stages = 2;
  EXPECT_EQ(question.refusal(), "/plan/virtual_stages: found 2 with 1f1b, allowed 1");
  question.request.schedule = "interleaved-1f1b";
  EXPECT_EQ(question.refusal(), "legal");
  question.request.virtual_stages = 1;
  EXPECT_EQ(question.refusal(),
            "/plan/virtual_stages: found 1 with interleaved-1f1b, allowed 2 or more; nearest 2");
}

// Design §3: a V has two chunks per stage, whether named or not; DualPipe's p chunks are one per
// stage.
TEST(PlanRefusal, AVOfOneChunkAStage) {
  PlanQuestion question;
  question.request.pipeline_parallel = 4;
  question.request.schedule = "zb-v";
  ASSERT_EQ(question.refusal(), "legal");
  EXPECT_EQ(question.answer()->virtual_stages, 2);
  question.request.virtual_stages = 2;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.virtual_stages = 1;
  EXPECT_EQ(question.refusal(), "/plan/virtual_stages: found 1 with zb-v, allowed 2");
  question.request.schedule = "dualpipe";
  question.training.global_batch = 128;  // 8 micro-batches a rank
  EXPECT_EQ(question.refusal(), "legal");
}

TEST(PlanRefusal, MicroBatchesThatInterleavingCannotTake) {
  PlanQuestion question;  // p = 4, D = 16
  question.request.pipeline_parallel = 4;
  question.request.virtual_stages = 2;
  question.training.global_batch = 192;  // 12 sequences a rank
  question.request.micro_batch = 3;      // m = 4
  EXPECT_EQ(question.refusal(), "legal");
  question.request.micro_batch = 2;  // m = 6
  EXPECT_EQ(question.refusal(),
            "/plan/micro_batch: found 6 micro-batches a step with interleaved-1f1b, allowed a "
            "multiple of pipeline_parallel 4; nearest micro_batch 1");
  question.training.global_batch = 112;  // 7 a rank: no micro-batch will do
  question.request.micro_batch = 1;
  EXPECT_TRUE(question.refusal().ends_with("; nearest global_batch 128"));
  question.training.global_batch = 128;
  EXPECT_EQ(question.refusal(), "legal");
}

TEST(PlanRefusal, ZeroStagesBeyondThree) {
  PlanQuestion question;
  question.request.zero_stage = 3;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.zero_stage = 4;
  EXPECT_EQ(question.refusal(), "/plan/zero_stage: found 4, allowed 0 to 3; nearest 3");
  question.request.zero_stage = -1;
  EXPECT_EQ(question.refusal(), "/plan/zero_stage: found -1, allowed 0 to 3; nearest 0");
}

TEST(PlanRefusal, ShardingGroupsThatDoNotDivideTheDataRanks) {
  PlanQuestion question;
  question.request.tensor_parallel = 4;  // D·c = 16
  question.request.sharding_group = 16;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.sharding_group = 32;
  EXPECT_EQ(question.refusal(),
            "/plan/sharding_group: found 32, allowed a divisor of 16 = data_parallel · "
            "context_parallel; nearest 16");
}

// A group that ends within a row of context-parallel ranks would have ranks in half of that row and
// in the next row.
TEST(PlanRefusal, ShardingGroupsThatEndWithinARowOfContextParallelRanks) {
  PlanQuestion question;
  question.request.tensor_parallel = 4;
  question.request.context_parallel = 4;  // D·c = 16
  for (const int group : {1, 2, 4, 8, 16}) {
    question.request.sharding_group = group;
    EXPECT_EQ(question.refusal(), "legal");
  }
  question.cluster.devices_per_node = 6;  // D·c = 12
  question.cluster.nodes = 8;
  question.training.global_batch = 48;
  question.request.sharding_group = 3;
  EXPECT_EQ(question.refusal(),
            "/plan/sharding_group: found 3, allowed a divisor of 12 = data_parallel · "
            "context_parallel that divides 4 or is its multiple; nearest 2");
}

TEST(PlanRefusal, RecomputationOfLayersThatAreNotThere) {
  PlanQuestion question;
  question.request.recompute = {RecomputeMode::full, 32};
  EXPECT_EQ(question.refusal(), "legal");
  question.request.recompute.full_layers = 33;
  EXPECT_EQ(question.refusal(), "/plan/recompute/full: found 33, allowed 1 to 32 layers");
  question.request.recompute.full_layers = -1;
  EXPECT_EQ(question.refusal(), "/plan/recompute/full: found -1, allowed 1 to 32 layers");
}

TEST(PlanRefusal, RecomputationOfStagesThatAreNotThere) {
  PlanQuestion question;
  question.request.pipeline_parallel = 2;
  question.request.recompute_per_stage = {{RecomputeMode::full, 32}, {}};
  EXPECT_EQ(question.refusal(), "legal");
  question.request.recompute_per_stage[0].full_layers = 33;
  EXPECT_EQ(question.refusal(), "/plan/recompute/0/full: found 33, allowed 1 to 32 layers");
  question.request.recompute_per_stage = {{}, {RecomputeMode::automatic, 0}};
  EXPECT_EQ(
      question.refusal(),
      "/plan/recompute/1: found \"auto\", allowed none, selective, full or a number of layers");
  question.request.recompute_per_stage = {{}, {}, {}};
  EXPECT_EQ(question.refusal(), "/plan/recompute: found 3 entries, allowed 2, one a stage");
}

TEST(PlanRefusal, ExpertLoadsThatCannotBe) {
  PlanQuestion question;
  question.request.capacity_factor = 0.0;
  EXPECT_EQ(question.refusal(), "/plan/capacity_factor: found 0, allowed more than 0");
  question.request.capacity_factor = 1.25;
  question.request.load_imbalance = 0.99;
  EXPECT_EQ(question.refusal(), "/plan/load_imbalance: found 0.99, allowed 1 or more");
  question.request.load_imbalance = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(question.refusal().starts_with("/plan/load_imbalance"));
  question.request.load_imbalance = 1;
  EXPECT_EQ(question.refusal(), "legal");
}

TEST(PlanRefusal, RankOrdersThatAreNoPermutation) {
  PlanQuestion question;
  for (const auto* legal : {"tp-cp-ep-dp-pp", "pp-dp-ep-cp-tp", "tp-pp-cp-ep-dp"}) {
    question.request.rank_order = legal;
    EXPECT_EQ(question.refusal(), "legal") << legal;
  }
  for (const auto* illegal : {"", "tp", "tp-cp-ep-dp-dp", "tp-cp-ep-dp", "tp-cp-ep-dp-pp-",
                              "tp_cp_ep_dp_pp", "TP-cp-ep-dp-pp", "tp-cp-ep-dp-xx"}) {
    question.request.rank_order = illegal;
    EXPECT_TRUE(question.refusal().starts_with("/plan/rank_order: found \"")) << illegal;
  }
}

TEST(PlanRefusal, CollectivesThatAreNotRegistered) {
  PlanQuestion question;
  question.request.collective = "ring";
  EXPECT_EQ(question.refusal(), "legal");
  question.request.collective = "rings";
  EXPECT_TRUE(question.refusal().starts_with("/plan/collective: found \"rings\", allowed "));
}

// The value that was found is cut to one line of 80 characters.
TEST(PlanRefusal, KeepsWhatWasFoundShortAndOnOneLine) {
  PlanQuestion question;
  question.request.schedule = "a\nb" + std::string(1000, 'x');
  const std::string message = question.answer().error().message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_LE(message.find(", allowed"),
            std::string_view("found ").size() + 80 + 2);  // "…" is 3 bytes
}

TEST(PlanRefusal, PrecisionThatTheDeviceHasNoRateFor) {
  PlanQuestion question;
  question.training.precision = *find_precision_recipe("fp16");
  EXPECT_TRUE(question.answer().has_value());
  question.training.precision = *find_precision_recipe("fp8");
  const auto refused = question.answer();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().where, "/training/precision");
  EXPECT_EQ(refused.error().message,
            "found fp8, which a device does not support; allowed bf16, fp16");
}

// Scales of blocks of 32 came with GEMMs of 4 bits (Blackwell tuning guide); an H100 has fp8 but
// not these.
TEST(PlanRefusal, ScalesOfBlocksOnDevicesThatHaveThem) {
  PlanQuestion question;
  const auto add_rate_of = [&rates = question.cluster.device.rates](Dtype dtype) {
    rates.gemm[static_cast<std::size_t>(dtype)] = rates.of(Dtype::bf16);
  };
  add_rate_of(Dtype::fp8);
  question.training.precision = *find_precision_recipe("fp8");
  EXPECT_TRUE(question.answer().has_value());
  question.training.precision = *find_precision_recipe("mxfp8");
  EXPECT_EQ(question.refusal(),
            "/training/precision: found mxfp8, which a device does not support; allowed bf16, "
            "fp16, fp8");
  add_rate_of(Dtype::fp4);
  EXPECT_TRUE(question.answer().has_value());
}

TEST(PlanRefusal, OffloadsOnlyOverALinkToTheHostsThatIsKnown) {
  PlanQuestion question;
  question.request.offload.optimizer = OffloadTarget::host;
  question.cluster.device.host_bandwidth = BytesPerSecond(0);
  EXPECT_EQ(question.refusal(), "/plan/offload: found some, allowed none: the host_bandwidth of " +
                                    question.cluster.device.name + " is not known");
  question.cluster.device.host_bandwidth = BytesPerSecond(64e9);
  EXPECT_EQ(question.refusal(), "legal");
}

TEST(PlanRefusal, OffloadsNoWeightsBesideMtpLayers) {
  PlanQuestion question;
  question.model.mtp_layers = 1;
  question.cluster.device.host_bandwidth = BytesPerSecond(64e9);
  question.request.offload.optimizer = OffloadTarget::host;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.offload.gradients = OffloadTarget::host;
  EXPECT_EQ(question.refusal(),
            "/plan/offload: found parameters or gradients, allowed optimizer and activations "
            "beside the model's mtp_layers");
}

// The master weights on the hosts would then be what the passes cast their weights from.
TEST(PlanRefusal, OffloadsNoMasterWeightsThatAreTheOnlyOnesBesideMtpLayers) {
  PlanQuestion question;
  question.model.mtp_layers = 1;
  question.cluster.device.host_bandwidth = BytesPerSecond(64e9);
  question.training.stack.keeps_weight_copy = false;
  question.request.offload.optimizer = OffloadTarget::host;
  question.request.zero_stage = 2;
  EXPECT_EQ(question.refusal(), "legal");
  question.request.zero_stage = 3;
  EXPECT_EQ(question.refusal(),
            "/plan/offload: found optimizer, which has the only weights under ZeRO-3, allowed "
            "activations beside the model's mtp_layers");
  question.model.mtp_layers = 0;
  EXPECT_EQ(question.refusal(), "legal");
}

}  // namespace
}  // namespace trainyard
