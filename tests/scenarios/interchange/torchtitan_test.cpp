// torchtitan's pipelines, chunk by chunk, and what its release 0.2.0 requires of a configuration
// (torchtitan/config/job_config.py, torchtitan/distributed/pipeline_parallel.py).
#include "scenarios/interchange/torchtitan/torchtitan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/interchange/foreign.h"
#include "tests/scenarios/interchange/plans.h"

namespace trainyard {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Expected<Imported> titan_read(const std::string& text, const std::string& model) {
  return import_torchtitan(foreign("[training]\nlocal_batch_size = 64\n[parallelism]\n" + text),
                           {.model = model, .node = "dgx-h100-80gb", .nodes = 16});
}
Plan titan_plan(const std::string& text, const std::string& model) {
  const auto read = titan_read(text, model);
  EXPECT_TRUE(read.has_value()) << line_of(read.error());
  const Scenario scenario = parse_scenario(read->document, "read").value();
  const Job& job = scenario.job;
  return make_plan(*scenario.plan, job.model, job.cluster, job.training).value();
}
std::vector<int> titan_chunks(const std::string& text, const std::string& model) {
  const Plan plan = titan_plan(text, model);
  const LayersOfChunks of_chunks(plan, model == "llama-3.1-70b" ? 80 : 32);
  std::vector<int> chunks;
  for (int i = 0; i < plan.pipeline_parallel * plan.virtual_stages; ++i) {
    chunks.push_back(of_chunks[i]);
  }
  return chunks;
}
std::string titan_refusal(const std::string& text) {
  const auto read = titan_read(text, "llama-3.1-8b");
  return read ? "accepted" : line_of(read.error());
}

// generate_llm_fqn_per_model_part: the embedding and the head count as one layer each, and the
// remainder goes to the first chunks.
TEST(TorchtitanPipeline, IsCutAsItsOwnFunctionDoes) {
  const std::string four = "pipeline_parallel_degree = 4\n";
  EXPECT_EQ(titan_chunks(four, "llama-3.1-70b"), (std::vector<int>{20, 21, 20, 19}));
  EXPECT_EQ(titan_chunks(four, "llama-3.1-8b"), (std::vector<int>{8, 9, 8, 7}));
  const std::string heavy = four +
                            "pipeline_parallel_first_stage_less_layers = 2\n"
                            "pipeline_parallel_last_stage_less_layers = 0\n";
  EXPECT_EQ(titan_chunks(heavy, "llama-3.1-8b"), (std::vector<int>{7, 9, 8, 8}));
  EXPECT_EQ(titan_chunks(four + "pipeline_parallel_schedule = 'Interleaved1F1B'\n", "llama-3.1-8b"),
            (std::vector<int>{4, 5, 4, 4, 4, 4, 4, 3}));
}

// train_configs/llama3_405b.toml of December 2024 (torchtitan/config_manager.py of its time), with
// a pipeline. At that time the keys of today's [parallelism] were in [training] and [experimental].
TEST(TorchtitanPlan, IsReadWhereEarlierFilesHaveIt) {
  const std::string text = R"([model]
name = "llama3"
flavor = "405B"
[training]
batch_size = 8
seq_len = 8192
data_parallel_replicate_degree = 2
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
[experimental]
context_parallel_degree = 2
pipeline_parallel_degree = 4
enable_async_tensor_parallel = true
[float8]
enable_float8_linear = true
)";
  const auto read = import_torchtitan(foreign(text), {.node = "dgx-h100-80gb", .nodes = 64});
  ASSERT_TRUE(read.has_value()) << line_of(read.error());
  EXPECT_THAT(read->assumptions, Contains("4 passes: as many as ranks in a pipeline"));
  const Scenario scenario = parse_scenario(read->document, "read").value();
  const Job& job = scenario.job;
  const Plan plan = make_plan(*scenario.plan, job.model, job.cluster, job.training).value();
  EXPECT_EQ(plan.tensor_parallel, 8);
  EXPECT_TRUE(plan.overlap.tensor_parallel);
  EXPECT_EQ(plan.context_parallel, 2);
  EXPECT_EQ(plan.pipeline_parallel, 4);
  EXPECT_EQ(plan.data_parallel, 8);
  EXPECT_EQ(plan.sharding_group, 4 * 2);
  EXPECT_EQ(plan.micro_batch, 8 / 4);
  EXPECT_EQ(job.training.global_batch, 8 * 8);
  EXPECT_EQ(job.training.precision.name, "fp8");
  const auto eight = import_torchtitan(
      foreign(text + "[parallelism]\npipeline_parallel_microbatches = 8\n"), {.nodes = 64});
  EXPECT_EQ(parse_scenario(eight.value().document, "read").value().plan->micro_batch, 8 / 8);
}

// 128 layers with embedding and head, two per chunk: 64 chunks, four per rank.
TEST(TorchtitanPipeline, CountsChunksByTheLayersOfEach) {
  const Plan plan = titan_plan(
      "pipeline_parallel_degree = 16\npipeline_parallel_schedule = 'Interleaved1F1B'\n"
      "pipeline_parallel_layers_per_stage = 2\ntensor_parallel_degree = 8\n",
      "llama-3.1-405b");
  EXPECT_EQ(plan.virtual_stages, 4);
  const LayersOfChunks of_chunks(plan, 126);
  EXPECT_EQ(of_chunks[0], 1);
  EXPECT_EQ(of_chunks[1], 2);
  EXPECT_EQ(of_chunks[63], 1);
}

std::string titan_modules(int first, int last) {
  std::string text = "module_fqns_per_model_part = [['tok_embeddings'";
  for (int i = first; i < 24; ++i) text += ", 'layers." + std::to_string(i) + "'";
  text += "], [";
  for (int i = 24; i < last; ++i) text += "'layers." + std::to_string(i) + "', ";
  return text + "'norm', 'output']]\n";
}

TEST(TorchtitanPipeline, IsCutIntoTheModulesItNames) {
  const std::string two = "pipeline_parallel_degree = 2\n";
  EXPECT_EQ(titan_chunks(two + titan_modules(0, 32), "llama-3.1-8b"), (std::vector<int>{24, 8}));
  const auto refused = HasSubstr("allowed: lists of tok_embeddings, layers.0 to layers.31");
  EXPECT_THAT(titan_refusal(two + titan_modules(1, 32)), refused);
  EXPECT_THAT(titan_refusal(two + titan_modules(0, 31)), refused);
  EXPECT_THAT(titan_refusal(two + "module_fqns_per_model_part = [1, 2]\n"), refused);
  EXPECT_THAT(titan_refusal(two + "module_fqns_per_model_part = []\n"), refused);
  EXPECT_THAT(titan_refusal("pipeline_parallel_degree = 3\n" + titan_modules(0, 32)),
              HasSubstr("allowed: chunks in a multiple of 3"));
}

std::string titan_export(const PlanRequest& request, const std::string& stack = "torchtitan",
                         const std::string& precision = "bf16",
                         const std::string& model = "llama-3.1-8b") {
  Scenario scenario = scenario_of(model, stack, 2, 256, "dgx-b200");
  scenario.job.training.precision = *find_precision_recipe(precision);
  const Job& job = scenario.job;
  const auto plan = make_plan(request, job.model, job.cluster, job.training).value();
  const auto exported = export_torchtitan(scenario, plan);
  return exported ? exported->files.front().text : line_of(exported.error());
}

// The keys of JobConfig in 0.2.0 no longer include `training.compile` and
// `pipeline_parallel_split_points`, nor the converters `float8` and `mx`.
TEST(TorchtitanExport, WritesTheKeysOfItsRelease) {
  const std::string dense = titan_export({.pipeline_parallel = 2, .zero_stage = 2});
  EXPECT_THAT(dense, AllOf(HasSubstr("[compile]\nenable = true\n"), Not(HasSubstr("split_points")),
                           HasSubstr("module_fqns_per_model_part"),
                           HasSubstr("'tok_embeddings',\n        'layers.0',")));
  EXPECT_THAT(titan_export({}, "torchtitan-eager"), HasSubstr("[compile]\nenable = false\n"));
  EXPECT_THAT(titan_export({}, "torchtitan", "fp8"),
              HasSubstr("converters = [ 'quantize.linear.float8' ]"));
  EXPECT_THAT(titan_export({}, "torchtitan", "mxfp8"),
              HasSubstr("converters = [ 'quantize.linear.mx' ]"));
  EXPECT_THAT(titan_export({}, "torchtitan", "fp8", "qwen3-30b-a3b"),
              AllOf(HasSubstr("'quantize.grouped_mm.float8'"),
                    HasSubstr("[quantize.grouped_mm.float8]\nfqns = [ 'experts' ]")));
}

// models/llama3/infra/parallelize.py: "DDP has not supported > 1D parallelism";
// distributed/tensor_parallel.py: "Async TP requires --training.compile";
// components/quantization/mx.py: "TP not yet supported with torch.compile for mxfp8";
// components/quantization/float8.py: "does not yet support pipeline parallelism".
TEST(TorchtitanExport, RefusesWhatTorchtitanDoesAtItsStart) {
  EXPECT_EQ(titan_export({.tensor_parallel = 8, .zero_stage = 0}),
            "/plan/zero_stage: found 0 with tensor_parallel 8 and pipeline_parallel 1; allowed in "
            "torchtitan: 2, 3 with more than data parallelism");
  EXPECT_THAT(titan_export({.zero_stage = 0}), HasSubstr("data_parallel_replicate_degree = 16"));
  PlanRequest overlapped{.tensor_parallel = 4};
  overlapped.overlap.tensor_parallel = true;
  EXPECT_EQ(titan_export(overlapped, "torchtitan-eager"),
            "/plan/overlap/tensor_parallel: found true with the stack torchtitan-eager; allowed in "
            "torchtitan: false, or the stack torchtitan");
  EXPECT_THAT(titan_export(overlapped), HasSubstr("enable_async_tensor_parallel = true"));
  EXPECT_THAT(titan_export({.tensor_parallel = 2}, "torchtitan", "mxfp8"),
              HasSubstr("/training/precision: found \"mxfp8\" with tensor_parallel 2"));
  EXPECT_THAT(titan_export({.pipeline_parallel = 2}, "torchtitan", "fp8", "qwen3-30b-a3b"),
              HasSubstr("/training/precision: found \"fp8\" of experts with pipeline_parallel"));
}

TEST(TorchtitanPrecision, SaysWhereAFileHasItOfLinearLayersAlone) {
  const auto assumed = [](const std::string& converters) {
    return import_torchtitan(foreign("[model]\nname = 'qwen3'\nflavor = '30B-A3B'\nconverters = " +
                                     converters + "\n[training]\n"),
                             {})
        .value()
        .assumptions;
  };
  const auto said = Contains(HasSubstr("precision fp8: of linear layers and experts"));
  EXPECT_THAT(assumed("['quantize.linear.float8']"), said);
  EXPECT_THAT(assumed("['quantize.linear.float8', 'quantize.grouped_mm.float8']"), Not(said));
}

}  // namespace
}  // namespace trainyard
