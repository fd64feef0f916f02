// Parts of a step that the analytic estimate and the program price independently. Where nothing
// overlaps, both must give the same price for each.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/cost/estimate.h"
#include "simulator/step.h"
#include "tests/model/cost/example_devices.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

struct Roads {
  Estimate estimated, played;
};

Roads both_roads(const PreparedJob& job, PlanRequest request, bool overlapped = false) {
  request.overlap.data_parallel = overlapped;
  const Plan plan = legal_plan(job, request);
  const auto simulation = simulate(job, plan);
  if (!simulation) {
    ADD_FAILURE() << simulation.error().where << ": " << simulation.error().message;
    return {};
  }
  return {estimate(job, plan), as_estimate(job, plan, *simulation)};
}

// Mixtral's layers, eight of them, on a node of eight H100.
PreparedJob mixtral_job(bool deduplicated) {
  PreparedJob job = llama_8b_on_h100(1, 16);
  job.job.model = mixtral_8x7b();
  job.job.model.layers = 8;
  job.job.training.stack.deduplicated_dispatch = deduplicated;
  return prepare(job.job);
}

PlanRequest of_experts(int expert, int expert_tensor, PlanRequest request = {}) {
  request.zero_stage = 1;
  request.expert_parallel = expert;
  request.expert_tensor_parallel = expert_tensor;
  return request;
}

PlanRequest sharded(int zero_stage, PlanRequest request) {
  request.zero_stage = zero_stage;
  return request;
}

TEST(EstimateAgreement, OfExpertsThatSeveralRanksShare) {
  const std::vector<PlanRequest> requests = {
      of_experts(1, 2),
      of_experts(1, 4),
      of_experts(2, 2),
      of_experts(4, 2),
      of_experts(2, 2, {.capacity_factor = 0.75}),
      of_experts(2, 2, {.capacity_factor = 2}),
      of_experts(2, 2, {.load_imbalance = 1.5}),
      of_experts(2, 2, {.recompute = {RecomputeMode::full, 0}}),
      of_experts(4, 2, {.tensor_parallel = 2}),
  };
  for (const bool deduplicated : {false, true}) {
    const PreparedJob job = mixtral_job(deduplicated);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Roads roads = both_roads(job, requests[i]);
      const std::string what = std::to_string(i) + (deduplicated ? " deduplicated" : "");
      EXPECT_NEAR(
          roads.played.breakdown.expert_parallel / roads.estimated.breakdown.expert_parallel, 1,
          0.02)
          << what;
      EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, 0.03) << what;
    }
  }
}

// Eight H100 whose all-reduce was measured on a switch of 450 GB/s, but which have other links.
TEST(EstimateAgreement, OfCollectivesOnLinksThatTheyWereNotMeasuredOn) {
  for (const auto& [kind, bandwidth] :
       {std::pair{IntraNodeKind::nvswitch, 450e9}, std::pair{IntraNodeKind::nvswitch, 50e9},
        std::pair{IntraNodeKind::pcie, 25e9}}) {
    PreparedJob job = llama_8b_on_h100(1, 16);
    Cluster& cluster = job.job.cluster;
    cluster.intra.kind = kind;
    cluster.intra.bandwidth = BytesPerSecond(bandwidth);
    cluster.device.link_bandwidth = BytesPerSecond(450e9);
    cluster.device.link_kind = IntraNodeKind::nvswitch;
    cluster.device.collectives = {
        {CollectiveOperation::all_reduce, 8, Seconds(15e-6), BytesPerSecond(280e9), 3e-9, {}}};
    const Roads roads = both_roads(
        prepare(job.job),
        {.tensor_parallel = 8, .sequence_parallel = false, .overlap = {.tensor_parallel = false}});
    EXPECT_NEAR(roads.played.breakdown.tensor_parallel / roads.estimated.breakdown.tensor_parallel,
                1, 0.01)
        << bandwidth;
    EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, 0.01) << bandwidth;
  }
}

// ---- Gradients and weights that are whole for a while -------------------------------------------

// What a rank holds of other ranks' states during a pass.
TEST(EstimateAgreement, OfThePeakOfMemoryUnderZeRO) {
  PreparedJob tied = llama_8b_on_h100(1, 16);
  tied.job.model.tied_embeddings = true;
  tied.job.model.layers = 8;
  for (const PreparedJob& job : {llama_8b_on_h100(1, 16), prepare(tied.job), mixtral_job(true)}) {
    for (const double reduction : {2.0, 4.0}) {
      Job reduced = job.job;
      reduced.training.stack.reduction_bytes = reduction;
      for (const int zero : {2, 3}) {
        const PlanRequest request{.zero_stage = zero, .recompute = {RecomputeMode::full, 0}};
        const Roads roads = both_roads(prepare(reduced), request, true);
        const double apart = roads.played.peak_memory / roads.estimated.peak_memory - 1;
        EXPECT_LT(apart, 0.01) << reduced.model.name << ", ZeRO-" << zero << ", " << reduction;
        EXPECT_GT(apart, -0.01) << reduced.model.name << ", ZeRO-" << zero << ", " << reduction;
      }
    }
  }
}

// Whole gradients and gathered weights under a pipeline, in time and in memory. Sends, which the
// estimate counts in every pass, are 2 % of the time, as under ZeRO-1. With several chunks the
// estimate takes the reductions of the slowest stage, where those of the head's chunk also delay
// the passes of the chunk before it.
TEST(EstimateAgreement, UnderNoSync) {
  PreparedJob job = llama_8b_on_h100(2, 32);
  job.job.training.stack.pipeline_no_sync = true;
  job.job.training.stack.keeps_weight_copy = false;
  for (const std::string_view schedule : {"gpipe", "1f1b", "interleaved-1f1b", "zb-v"}) {
    for (const int zero : {2, 3}) {
      PlanRequest request{.pipeline_parallel = 4, .recompute = {RecomputeMode::full, 0}};
      request.schedule = schedule;
      const bool chunks = find_schedule(schedule)->needs_chunks;
      if (chunks) request.virtual_stages = 2;
      const Roads roads = both_roads(prepare(job.job), sharded(zero, request), true);
      const double apart = chunks ? 0.04 : 0.03;
      EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, apart) << schedule;
      EXPECT_NEAR(roads.played.peak_memory / roads.estimated.peak_memory, 1, 0.03) << schedule;
    }
  }
}

// With sequence parallelism the gradients that wait between the halves of a backward pass are
// gathered. They are larger than the activations that the first half frees.
TEST(EstimateAgreement, OfMemoryBetweenTheHalvesOfABackwardPass) {
  const PreparedJob job = llama_8b_on_h100(2, 32);
  for (const std::string_view schedule : {"zb-h1", "zb-h2", "zb-v"}) {
    for (const bool sequence_parallel : {false, true}) {
      PlanRequest request{.tensor_parallel = 4, .pipeline_parallel = 4};
      request.schedule = schedule;
      request.sequence_parallel = sequence_parallel;
      if (find_schedule(schedule)->needs_chunks) request.virtual_stages = 2;
      const Roads roads = both_roads(job, request, true);
      const double apart = schedule == "zb-v" ? 0.05 : 0.03;
      EXPECT_NEAR(roads.played.peak_memory / roads.estimated.peak_memory, 1, apart)
          << schedule << sequence_parallel;
    }
  }
}

// Stacks that keep the gathered inputs of GEMMs for the backward pass.
TEST(EstimateAgreement, OfKeptGatheredInputs) {
  PreparedJob job = llama_8b_on_h100(1, 16);
  job.job.training.stack.keeps_gathered_inputs = true;
  for (const RecomputeMode mode : {RecomputeMode::none, RecomputeMode::full}) {
    const PlanRequest request{.tensor_parallel = 8, .recompute = {mode, 0}};
    const Roads roads = both_roads(prepare(job.job), request, true);
    EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, 0.01);
    EXPECT_NEAR(roads.played.peak_memory / roads.estimated.peak_memory, 1, 0.01);
  }
}

// Long sequences of which most layers see only a window. Those layers are too short to hide the
// messages that the layers with full attention hide.
TEST(EstimateAgreement, OfLayersOfUnlikeWorkBesideShardedParameters) {
  PreparedJob job = llama_8b_on_h100(4, 16);
  job.job.cluster.inter.nics_per_node = 1;
  job.job.training.sequence_length = 131072;
  job.job.model = gpt_oss_20b();
  for (const int full_every : {2, 3, 6}) {
    job.job.model.full_attention_every = full_every;
    for (const int zero : {2, 3}) {
      for (const RecomputeMode mode : {RecomputeMode::none, RecomputeMode::full}) {
        const PlanRequest request{.context_parallel = 2, .recompute = {mode, 0}};
        const Roads roads = both_roads(prepare(job.job), sharded(zero, request), true);
        EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, 0.03)
            << full_every << ", ZeRO-" << zero;
      }
    }
  }
}

// Mixtral's layers on four nodes with one NIC each, so that messages take longer than the passes.
PreparedJob mixtral_on_slow_links() {
  PreparedJob job = mixtral_job(true);
  job.job.cluster = example_cluster(example_h100(), 4);
  job.job.cluster.inter.nics_per_node = 1;
  job.job.training.global_batch = 64;
  return prepare(job.job);
}

PlanRequest interleaved(int zero_stage, int virtual_stages, Recompute recompute = {}) {
  PlanRequest request{.pipeline_parallel = 2, .recompute = recompute};
  request.schedule = "interleaved-1f1b";
  request.virtual_stages = virtual_stages;
  return sharded(zero_stage, request);
}

// Every second layer has experts, by far the largest part. A dense layer hides almost nothing of
// the gather after it, and lies in memory beside the weights and gradients of an MoE layer. Chunks
// of one layer have no neighbour; for such chunks the estimate takes the mean.
TEST(EstimateAgreement, OfDenseAndMoeLayersInTurn) {
  Job job = mixtral_on_slow_links().job;
  job.model.moe_every = 2;
  for (const RecomputeMode mode : {RecomputeMode::none, RecomputeMode::full}) {
    for (const int chunks : {2, 4}) {
      const Roads roads = both_roads(prepare(job), interleaved(3, chunks, {mode, 0}), true);
      EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, 0.04) << chunks;
      EXPECT_NEAR(roads.played.peak_memory / roads.estimated.peak_memory, 1, 0.04) << chunks;
    }
    const PlanRequest request{.recompute = {mode, 0}};
    const Roads roads = both_roads(prepare(job), sharded(3, request), true);
    EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, 0.02);
    EXPECT_NEAR(roads.played.peak_memory / roads.estimated.peak_memory, 1, 0.04);
  }
}

// Few micro-batches in many chunks. While the pipeline fills, sends share their links with gathers;
// while it drains, with reductions, which ZeRO-2 has for every micro-batch: there the links are
// busy with them from the first gradient to the end, and what sends take of that is counted on
// average.
TEST(EstimateAgreement, OfSendsBesideParametersOfManyChunks) {
  for (const int zero : {1, 2}) {
    for (const int chunks : {2, 4}) {
      const Roads roads = both_roads(mixtral_on_slow_links(), interleaved(zero, chunks), true);
      EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, zero == 2 ? 0.045 : 0.03)
          << chunks << ", ZeRO-" << zero;
    }
  }
}

// The keys and values of the whole sequence, and their gradients, in attention's backward pass.
TEST(EstimateAgreement, OfGatheredKeysAndValues) {
  PreparedJob job = llama_8b_on_h100(2, 16);
  job.job.training.sequence_length = 131072;
  job.job.model.kv_heads = job.job.model.attention_heads;
  for (const ContextAlgorithm algorithm : {ContextAlgorithm::ring, ContextAlgorithm::all_gather}) {
    const PlanRequest request{.context_parallel = 16,
                              .context_parallel_algorithm = algorithm,
                              .recompute = {RecomputeMode::full, 0}};
    const Roads roads = both_roads(prepare(job.job), request, true);
    EXPECT_NEAR(roads.played.peak_memory / roads.estimated.peak_memory, 1, 0.04);
  }
}

// Learned positions are whole in the embedding's passes, but not in those of a head that shares its
// matrix. They take more memory than two layers' activations, and less than sixteen layers'.
TEST(EstimateAgreement, OfLearnedPositionsUnderZeRO) {
  PreparedJob job = llama_8b_on_h100(1, 16);
  job.job.training.sequence_length = 1048576;
  job.job.model.learned_positions = true;
  job.job.model.tied_embeddings = true;
  for (const int layers : {2, 16}) {
    job.job.model.layers = layers;
    for (const int zero : {2, 3}) {
      const PlanRequest request{.context_parallel = 8,
                                .context_parallel_algorithm = ContextAlgorithm::ulysses,
                                .recompute = {RecomputeMode::full, 0}};
      const Roads roads = both_roads(prepare(job.job), sharded(zero, request), true);
      EXPECT_NEAR(roads.played.peak_memory / roads.estimated.peak_memory, 1, 0.03)
          << layers << " layers, ZeRO-" << zero;
    }
  }
}

// Layers with more weights than the head. Without overlap the gradients of one unit are whole. The
// weights of the next unit after the head do not arrive before the loss.
TEST(EstimateAgreement, OfThePeakOfMemoryWhereLayersAreLarge) {
  PreparedJob job = llama_8b_on_h100(4, 64);
  job.job.model.layers = 8;
  job.job.model.hidden_size = 16384;
  job.job.model.attention_heads = 128;
  job.job.model.ffn_size = 53248;
  for (const bool overlaps : {false, true}) {
    for (const std::int64_t sequence : {2048, 16384}) {
      job.job.training.sequence_length = sequence;
      job.job.training.stack.saved_logit_bytes = sequence > 2048 ? 14 : 6;  // the loss is the peak
      const Roads roads = both_roads(prepare(job.job), sharded(3, {}), overlaps);
      EXPECT_NEAR(roads.played.peak_memory / roads.estimated.peak_memory, 1, 0.025)
          << sequence << (overlaps ? " beside" : "");
    }
  }
}

// A ring that recomputes every second GEMM keeps nothing that it received.
TEST(EstimateAgreement, OfEverySecondMatmulInARing) {
  PreparedJob job = llama_8b_on_h100(2, 16);
  job.job.training.sequence_length = 65536;
  job.job.training.stack.selective = SelectiveRecompute::every_second_matmul;
  job.job.model.kv_heads = job.job.model.attention_heads;
  for (const int ranks : {2, 4, 8}) {
    const PlanRequest request{.context_parallel = ranks,
                              .recompute = {RecomputeMode::selective, 0}};
    const Roads roads = both_roads(prepare(job.job), request, true);
    EXPECT_NEAR(roads.played.peak_memory / roads.estimated.peak_memory, 1, 0.02) << ranks;
  }
}

// Under Ulysses, what was received is kept beside every second GEMM's output. Queries and values of
// the rank's own tokens are such outputs too, but nobody reads them again, so a compiler does not
// keep them.
TEST(EstimateAgreement, OfEverySecondMatmulUnderUlysses) {
  PreparedJob job = llama_8b_on_h100(1, 16);
  job.job.training.sequence_length = 131072;
  job.job.training.stack.selective = SelectiveRecompute::every_second_matmul;
  for (const bool compiled : {false, true}) {
    job.job.training.stack.compiled = compiled;
    for (const int kv_heads : {8, 32}) {
      job.job.model.kv_heads = kv_heads;
      const PlanRequest request{.context_parallel = 8,
                                .context_parallel_algorithm = ContextAlgorithm::ulysses,
                                .recompute = {RecomputeMode::selective, 0}};
      const Roads roads = both_roads(prepare(job.job), request, true);
      const double apart = roads.played.peak_memory / roads.estimated.peak_memory - 1;
      EXPECT_LT(apart, 0.005) << kv_heads << (compiled ? " compiled" : "");
      EXPECT_GT(apart, -0.02) << kv_heads << (compiled ? " compiled" : "");
    }
  }
}

// ---- Some layers in full ------------------------------------------------------------------------

PlanRequest repeating(int layers, std::string_view schedule, int virtual_stages) {
  PlanRequest request{.pipeline_parallel = 4, .recompute = {RecomputeMode::full, layers}};
  request.schedule = schedule;
  if (virtual_stages > 1) request.virtual_stages = virtual_stages;
  return sharded(1, request);
}

// The first layers of every chunk are recomputed. A stage holds eight layers, or sixteen if
// micro-batches go both ways. Under ZB-V the estimate takes the mean of what lies between the
// halves of the two chunks' backward passes.
TEST(EstimateAgreement, OfMemoryWhereSomeLayersOfEveryChunkAreRepeated) {
  PreparedJob job = llama_8b_on_h100(1, 32);
  job.job.training.sequence_length = 16384;
  for (const auto& [schedule, chunks] :
       {std::pair{"1f1b", 1}, std::pair{"interleaved-1f1b", 2}, std::pair{"interleaved-1f1b", 4},
        std::pair{"dualpipe", 1}, std::pair{"zb-v", 2}}) {
    for (const int layers : {2, 3, 4, 6, 8}) {
      const Roads roads = both_roads(prepare(job.job), repeating(layers, schedule, chunks), true);
      const std::string what = std::string(schedule) + " " + std::to_string(layers);
      const bool halves = schedule == std::string_view("zb-v");
      for (std::size_t stage = 0; stage < roads.played.stages.size(); ++stage) {
        const Bytes estimated = roads.estimated.stages[stage].memory.at_peak.device();
        const Bytes played = roads.played.stages[stage].memory.at_peak.device();
        EXPECT_LT(played / estimated, halves ? 1.04 : 1.01) << what << " stage " << stage;
      }
      EXPECT_GT(roads.played.peak_memory / roads.estimated.peak_memory, 0.94) << what;
    }
  }
}

// The first layer of every chunk of two sees a window, the second the whole sequence, so the layers
// that are recomputed are fast ones.
TEST(EstimateAgreement, OfTimeWhereSomeOfUnlikeLayersAreRepeated) {
  PreparedJob job = llama_8b_on_h100(2, 32);
  job.job.training.sequence_length = 32768;
  job.job.model.sliding_window = 512;
  job.job.model.full_attention_every = 2;
  for (const int layers : {2, 4, 6}) {
    PlanRequest request{.pipeline_parallel = 4, .recompute = {RecomputeMode::full, layers}};
    request.schedule = "interleaved-1f1b";
    request.virtual_stages = 4;
    request.overlap.pipeline = true;
    const Roads roads = both_roads(prepare(job.job), sharded(1, request), true);
    EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, 0.02) << layers;
    EXPECT_NEAR(roads.played.breakdown.recompute / roads.estimated.breakdown.recompute, 1, 0.02)
        << layers;
  }
}

// Without fused attention, a layer with a window keeps less than a layer that sees everything.
// Stages of four layers have one or two of the latter, in different places, which decides which
// layers are recomputed and which are freed by then. The estimate counts the largest layer's
// gradients beside the last layer's activations.
TEST(EstimateAgreement, OfMemoryWhereSomeOfUnlikeLayersAreRepeated) {
  PreparedJob job = llama_8b_on_h100(2, 32);
  job.job.training.sequence_length = 8192;
  job.job.training.stack.flash_attention = false;
  job.job.model.sliding_window = 512;
  job.job.model.full_attention_every = 2;
  for (const int layers : {7, 16, 25}) {
    const PlanRequest request{.tensor_parallel = 8, .recompute = {RecomputeMode::full, layers}};
    const Roads roads = both_roads(prepare(job.job), request, true);
    EXPECT_NEAR(roads.played.peak_memory / roads.estimated.peak_memory, 1, 0.02) << layers;
  }
  job.job.model.full_attention_every = 3;
  for (const int layers : {1, 2, 3}) {
    const PlanRequest request{
        .tensor_parallel = 2, .pipeline_parallel = 8, .recompute = {RecomputeMode::full, layers}};
    const Roads roads = both_roads(prepare(job.job), sharded(1, request), true);
    for (std::size_t stage = 0; stage < roads.played.stages.size(); ++stage) {
      const Bytes estimated = roads.estimated.stages[stage].memory.at_peak.device();
      const Bytes played = roads.played.stages[stage].memory.at_peak.device();
      EXPECT_LT(played / estimated, 1.01) << layers << " stage " << stage;
      EXPECT_GT(played / estimated, 0.91) << layers << " stage " << stage;
    }
  }
}

// ---- Every second layer in full -----------------------------------------------------------------

PlanRequest repeating_every_second(PlanRequest request) {
  request.recompute = {RecomputeMode::selective, 0};
  return request;
}

PreparedJob of_every_second_layer(PreparedJob job) {
  job.job.training.stack.selective = SelectiveRecompute::half_of_layers;
  return prepare(job.job);
}

// Mixtral's layers, every second one with experts: the dense ones are repeated, the others not. In
// stages of an odd number of layers it is the dense ones or those with experts in turn.
TEST(EstimateAgreement, OfEverySecondLayerOfUnlikeOnes) {
  Job job = mixtral_job(true).job;
  job.model.moe_every = 2;
  for (const bool early : {false, true}) {
    job.training.stack.recompute_stops_early = early;
    for (const int layers : {8, 12}) {
      job.model.layers = layers;
      const PreparedJob of = of_every_second_layer(prepare(job));
      for (const int stages : {1, 2, 4}) {
        for (const int zero : {1, 3}) {
          const PlanRequest request = repeating_every_second({.pipeline_parallel = stages});
          const Roads roads = both_roads(of, sharded(zero, request), true);
          const std::string what = std::to_string(layers) + " layers, " + std::to_string(stages) +
                                   " stages, ZeRO-" + std::to_string(zero);
          EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, 0.035) << what;
          EXPECT_NEAR(roads.played.peak_memory / roads.estimated.peak_memory, 1, 0.03) << what;
          EXPECT_NEAR(roads.played.breakdown.recompute / roads.estimated.breakdown.recompute, 1,
                      0.01)
              << what;
        }
      }
    }
  }
}

// Three layers of a stage: the first and the third.
TEST(EstimateAgreement, OfEverySecondLayerOfAlikeOnes) {
  for (const int layers : {8, 12}) {
    PreparedJob job = llama_8b_on_h100(1, 32);
    job.job.training.sequence_length = 16384;
    job.job.model.layers = layers;
    const PreparedJob of = of_every_second_layer(job);
    for (const auto& [schedule, chunks] :
         {std::pair{"1f1b", 1}, std::pair{"interleaved-1f1b", 2}, std::pair{"zb-h1", 1}}) {
      PlanRequest request = repeating_every_second({.pipeline_parallel = 4});
      request.schedule = schedule;
      if (chunks > 1) request.virtual_stages = layers == 12 ? 3 : chunks;
      const Roads roads = both_roads(of, sharded(1, request), true);
      const std::string what = std::string(schedule) + " " + std::to_string(layers);
      EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, 0.03) << what;
      EXPECT_NEAR(roads.played.peak_memory / roads.estimated.peak_memory, 1, 0.03) << what;
    }
  }
}

// ---- What the engine of a pipeline holds --------------------------------------------------------

// Bytes of each stage that the engine of a pipeline adds on both roads.
std::vector<std::pair<Bytes, Bytes>> held_by_engine(const char* schedule, RecomputeMode mode,
                                                    bool to_the_end) {
  PlanRequest request{.pipeline_parallel = 4, .recompute = {mode, 0}};
  request.schedule = schedule;
  if (find_schedule(schedule)->needs_chunks) request.virtual_stages = 2;
  PreparedJob job = llama_8b_on_h100(1, 64);
  const Roads without = both_roads(job, sharded(1, request), true);
  Stack& stack = job.job.training.stack;
  stack.pipeline_receive_buffers = true;
  stack.pipeline_keeps_outputs = stack.pipeline_keeps_gradients = to_the_end;
  stack.pipeline_keeps_logits = to_the_end;
  const Roads with = both_roads(prepare(job.job), sharded(1, request), true);
  std::vector<std::pair<Bytes, Bytes>> held;
  for (std::size_t stage = 0; stage < with.played.stages.size(); ++stage) {
    const auto more = [stage](const Estimate& all, const Estimate& some) {
      return all.stages[stage].memory.at_peak.allocated() -
             some.stages[stage].memory.at_peak.allocated();
    };
    held.emplace_back(more(with.played, without.played), more(with.estimated, without.estimated));
  }
  return held;
}

// In a V what a stage has at its peak is not all of what it ever sends.
TEST(EstimateAgreement, OfWhatThePipelineHolds) {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved-1f1b", "zb-v"}) {
    for (const RecomputeMode mode : {RecomputeMode::none, RecomputeMode::full}) {
      for (const bool to_the_end : {false, true}) {
        const double apart = schedule == std::string_view("zb-v") ? 0.1 : 0.05;
        for (const auto& [played, estimated] : held_by_engine(schedule, mode, to_the_end)) {
          EXPECT_NEAR(played.value(), estimated.value(), apart * estimated.value() + 1)
              << schedule << (to_the_end ? " to the end" : "");
        }
      }
    }
  }
}

// ---- Activations on the hosts -------------------------------------------------------------------

// Of a layer that is recomputed, what it keeps (its input or more) leaves the device.
TEST(EstimateAgreement, OfCheckpointsThatLeaveTheDevice) {
  PreparedJob job = llama_8b_on_h100(1, 16);
  job.job.training.sequence_length = 32768;
  job.job.training.stack.selective = SelectiveRecompute::every_second_matmul;
  for (const RecomputeMode mode : {RecomputeMode::full, RecomputeMode::selective}) {
    PlanRequest request{.recompute = {mode, 0}};
    request.offload.activations = OffloadTarget::host;
    const Roads roads = both_roads(prepare(job.job), sharded(3, request), true);
    const double apart = roads.played.peak_memory / roads.estimated.peak_memory - 1;
    EXPECT_LT(apart, 0.005) << name_of(mode);
    EXPECT_GT(apart, -0.05) << name_of(mode);
  }
}

// ---- Messages of all units together -------------------------------------------------------------

// Without overlap one bucket holds all gradients (Megatron-LM, param_and_grad_buffer.py), so the
// latency of a ring's steps is paid once and not per layer.
TEST(EstimateAgreement, OfParametersThatDoNotGoBesidePasses) {
  const Roads roads = both_roads(llama_8b_on_h100(8, 64), sharded(1, {}));
  EXPECT_NEAR(roads.played.breakdown.data_parallel / roads.estimated.breakdown.data_parallel, 1,
              0.01);
}

// ---- Steps that wait for nobody -----------------------------------------------------------------

// Handbook §8: without a barrier, steps follow each other at intervals of one span, whatever the
// schedule's default is.
TEST(EstimateAgreement, OfSplitPassesWithoutABarrier) {
  for (const std::string_view schedule : {"zb-h1", "dualpipe", "zb-h2"}) {
    PlanRequest request{.pipeline_parallel = 8};
    request.schedule = schedule;
    request.optimizer_barrier = false;
    const Roads roads = both_roads(llama_8b_on_h100(1, 16), sharded(0, request));
    EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, 0.02) << schedule;
  }
}

// ---- An optimizer that works on whole matrices --------------------------------------------------

PreparedJob with_optimizer(PreparedJob job, std::string_view name) {
  job.job.training.optimizer = *find_optimizer(name);
  return prepare(job.job);
}

TEST(EstimateAgreement, OfTheUpdateOfWholeMatrices) {
  for (const int zero : {0, 1, 3}) {
    for (const auto& [job, request] :
         {std::pair{llama_8b_on_h100(1, 16), PlanRequest{.tensor_parallel = 2}},
          std::pair{llama_8b_on_h100(1, 16), PlanRequest{.pipeline_parallel = 2}},
          std::pair{mixtral_job(true), of_experts(4, 2)}}) {
      const Roads roads = both_roads(with_optimizer(job, "muon"), sharded(zero, request));
      EXPECT_NEAR(roads.played.breakdown.optimizer / roads.estimated.breakdown.optimizer, 1, 0.02)
          << zero;
      EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, 0.03) << zero;
    }
  }
}

// A layer of Llama-8B (h 4096, f 14336, keys 1024 wide) takes 2·6h³ for Q and O, 2·(4·1024²·h +
// 2·1024³) for K and V and 3·(4h²f + 2h³) for the MLP, five times (Jordan et al. 2024); two ranks
// share 32 layers at 100 TFLOP/s. Lion moves the same bytes per layer. For each rank's half of
// embedding and head (128,256 × 4,096) and for the final norm, AdamW also reads and writes a second
// moment, 8 bytes at 1 TB/s.
TEST(EstimateAgreement, OfMuonIsOnNewtonSchulzByHand) {
  PreparedJob job = llama_8b_on_h100(1, 16);
  job.job.cluster.device = ideal_device();
  const PlanRequest request = sharded(0, {.tensor_parallel = 2});
  const Roads muon = both_roads(with_optimizer(job, "muon"), request);
  const Roads lion = both_roads(with_optimizer(job, "lion"), request);
  const double layer = 2 * 4.12317e11 + 2 * 1.93274e10 + 3 * 1.09951e12;
  const double ends = 128256.0 * 4096 + 4096;
  const Seconds products(32 * 5 * layer / 2 / 100e12 + 8 * ends / 1e12);
  for (const Estimate Roads::*road : {&Roads::estimated, &Roads::played}) {
    const Seconds more = (muon.*road).breakdown.optimizer - (lion.*road).breakdown.optimizer;
    EXPECT_NEAR(more / products, 1, 1e-4);
    EXPECT_NEAR(((muon.*road).step_time - (lion.*road).step_time) / products, 1, 1e-4);
  }
}

}  // namespace
}  // namespace trainyard
