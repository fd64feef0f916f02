// Foreign files that state more than any run has. They are refused or read in one pass; nothing
// grows without bound, and no count exceeds an integer.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/interchange/accelerate.h"
#include "scenarios/interchange/deepspeed.h"
#include "scenarios/interchange/documents/toml.h"
#include "scenarios/interchange/documents/yaml.h"
#include "scenarios/interchange/megatron/megatron.h"
#include "scenarios/interchange/scenario_draft.h"
#include "scenarios/interchange/shell/text.h"
#include "scenarios/interchange/torchtitan/torchtitan.h"
#include "tests/scenarios/interchange/foreign.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;

std::string refusal_of_words(const std::string& text) {
  const auto options = parse_command_line(foreign(text));
  return options ? "accepted" : line_of(options.error());
}

// Each word is short enough, but together they have 600 MB.
TEST(ShellText, DoesNotLetManyWordsGrow) {
  const std::string variable = "A=" + std::string(60'000, 'a') + "\n";
  std::string words = variable;
  std::string variables = variable;
  for (int i = 0; i < 10'000; ++i) {
    words += "$A ";
    variables += fmt::format("B{}=$A ", i);
  }
  EXPECT_THAT(refusal_of_words(words), HasSubstr("more text than a command line has"));
  EXPECT_THAT(refusal_of_words(variables), HasSubstr("more text than a command line has"));
  EXPECT_EQ(refusal_of_words(variable + "--a $A $A $A --b ${A:-x}"), "accepted");
}

TEST(ShellText, DoesNotCopyBehindTheLongestWord) {
  std::string text = "A=" + std::string(60'000, 'a') + "\n--a \"";
  for (int i = 0; i < 100'000; ++i) text += "$A";
  EXPECT_THAT(refusal_of_words(text + "\""), HasSubstr("more text than a command line has"));
}

TEST(YamlDocument, ReadsManyKeysAndFindsTheOneThatIsThereTwice) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += fmt::format("key{}: {}\n", i, i);
  const auto read = parse_yaml(foreign(text));
  ASSERT_TRUE(read.has_value()) << line_of(read.error());
  EXPECT_EQ(read->size(), 40'000u);
  EXPECT_EQ(read->at("key39999"), 39'999);
  EXPECT_EQ(line_of(parse_yaml(foreign(text + "key7: 1\n")).error()),
            "foreign: line 40001: found the key \"key7\" twice; allowed: once");
  // In another object it is another key.
  EXPECT_EQ(parse_yaml(foreign("a: {b: 1, c: {b: 2}}\nb: 3\nd: {b: 4}\n"))->dump(),
            R"({"a":{"b":1,"c":{"b":2}},"b":3,"d":{"b":4}})");
}

TEST(TomlDocument, ReadsManyKeys) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += fmt::format("key{} = {}\n", i, i);
  const auto read = parse_toml(foreign(text));
  ASSERT_TRUE(read.has_value()) << line_of(read.error());
  EXPECT_EQ(read->size(), 40'000u);
  EXPECT_EQ(read->at("key39999"), 39'999);
}

TEST(MegatronLists, RepeatNothingForever) {
  std::string text = "[]";
  for (int i = 0; i < 100; ++i) text += "*2147483647";
  EXPECT_EQ(parse_python_list(text).value(), std::vector<int>());
  // What is dropped again was built all the same.
  std::string dropped = "[1]";
  for (int i = 0; i < 10'000; ++i) dropped += "+[1]*99999*0";
  EXPECT_FALSE(parse_python_list(dropped).has_value());
}

TEST(ProductUpTo, IsTheProductOrTheMost) {
  EXPECT_EQ(product_up_to(1000, {}), 1);
  EXPECT_EQ(product_up_to(1000, {4, 5, 50}), 1000);
  EXPECT_EQ(product_up_to(1000, {4, 5, 51}), 1000);
  EXPECT_EQ(product_up_to(1000, {3, 5, 7}), 105);
  EXPECT_EQ(product_up_to(1000, {1'000'000, 0}), 0);
  EXPECT_EQ(product_up_to(2'000'000'000'000'000'000, {9'000'000'000'000'000'000, 9}),
            2'000'000'000'000'000'000);
}

std::string refusal_of_degrees(Expected<Imported> (*import)(const ForeignFile&,
                                                            const ImportSettings&),
                               const std::string& text) {
  const auto read = import(foreign(text), {.model = "llama-3.1-8b", .node = "dgx-h100-80gb"});
  return read ? "accepted: " + read->document : line_of(read.error());
}

const std::string kGpt =
    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --vocab-size 32000 "
    "--global-batch-size 64 ";

// 65536 · 65536 is 0 in 32 bits, and (10^6)^4 exceeds 64 bits.
TEST(ImportedDegrees, AreRefusedHoweverLarge) {
  EXPECT_THAT(refusal_of_degrees(import_megatron,
                                 kGpt + "--seq-length 4096 --pipeline-model-parallel-size 65536 "
                                        "--num-virtual-stages-per-pipeline-rank 65536"),
              HasSubstr("/plan/"));
  EXPECT_THAT(refusal_of_degrees(import_megatron,
                                 kGpt + "--seq-length 4096 --tensor-model-parallel-size 1000000 "
                                        "--pipeline-model-parallel-size 1000000 "
                                        "--recompute-granularity full --recompute-method block "
                                        "--recompute-num-layers 1000000 "
                                        "--num-virtual-stages-per-pipeline-rank 1000000 "
                                        "--num-distributed-optimizer-instances 2"),
              HasSubstr("num_distributed_optimizer_instances"));
  EXPECT_THAT(refusal_of_degrees(import_deepspeed, R"({"train_batch_size": 100000000,
      "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1,
      "tensor_parallel": {"autotp_size": 1000000}, "sequence_parallel_size": 1000000})"),
              HasSubstr("/plan/"));
  const std::string titan =
      "[parallelism]\n"
      "data_parallel_shard_degree = 100000000\n"
      "data_parallel_replicate_degree = 1000000\n"
      "tensor_parallel_degree = 1000000\n"
      "context_parallel_degree = 1000000\n";
  EXPECT_THAT(refusal_of_degrees(import_torchtitan, titan + "pipeline_parallel_degree = 8\n"),
              HasSubstr("/plan/"));
  EXPECT_THAT(refusal_of_degrees(import_torchtitan, titan + "pipeline_parallel_degree = 1000000\n"),
              HasSubstr("pipeline_parallel_degree \"1000000\"; allowed: fewer"));
  EXPECT_THAT(refusal_of_degrees(import_fsdp,
                                 "parallelism_config_dp_replicate_size: 1000000\n"
                                 "parallelism_config_dp_shard_size: 1000000\n"
                                 "parallelism_config_tp_size: 1000000\n"
                                 "parallelism_config_cp_size: 1000000\n"),
              HasSubstr("/plan/"));
}

// 10^12 samples of 1.9e7 tokens would wrap around to 5.5e17, which is allowed.
TEST(ImportedDegrees, AreRefusedWithMoreTokensThanARunHas) {
  EXPECT_THAT(refusal_of_degrees(import_megatron,
                                 kGpt + "--seq-length 19000000 --train-samples 1000000000000"),
              HasSubstr("/training/tokens"));
}

}  // namespace
}  // namespace trainyard
