// trainyard program: the operations of one rank.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace trainyard {
namespace {

// Eight devices: t 2, p 2, D 2, two layers a stage.
std::filesystem::path eight_ranks(const std::string& more = "") {
  return write_scratch("eight.json", R"({
    "trainyard": "scenario/1", "name": "eight ranks",
    "model": { "name": "small", "layers": 4, "hidden_size": 512, "attention_heads": 8,
               "vocabulary": 1024 },
    "cluster": { "node": "dgx-h100-80gb", "nodes": 1 },
    "training": { "global_batch": 8, "sequence_length": 128, "precision": "bf16",
                  "optimizer": "adamw", "stack": "megatron-core" },
    "plan": { "tensor_parallel": 2, "pipeline_parallel": 2, "micro_batch": 2, "zero_stage": 0)" +
                                         more + " } }");
}

std::string program(const std::filesystem::path& file, const std::string& options) {
  return "program '" + file.string() + "' " + options;
}

TEST(ProgramCommand, PrintsTheOperationsOfARankAsATable) {
  const Ran ran = run_trainyard(program(eight_ranks(), "--rank 5"));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(
      ran.out.starts_with("rank 5 of 8: stage 1, tensor rank 1, context rank 0, data rank 0; "));
  for (const char* part : {"receive from 1", "send to 1", "qkv projection, weight gradient",
                           "256×768×512", "all-gather, tensor", "optimizer step"}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part;
  }
}

TEST(ProgramCommand, GivesTheSameListAsJsonAndCsv) {
  const Ran json = run_trainyard(program(eight_ranks(), "--rank 5 --format json"));
  const Ran csv = run_trainyard(program(eight_ranks(), "--rank 5 --format csv"));
  ASSERT_EQ(json.status, 0) << json.err;
  ASSERT_EQ(csv.status, 0) << csv.err;
  const PrintedJson document = PrintedJson::parse(json.out);
  EXPECT_EQ(document.at("trainyard"), "program/1");
  EXPECT_EQ(document.at("groups").at("tensor"), PrintedJson({4, 5}));
  EXPECT_EQ(document.at("groups").at("data"), PrintedJson({5, 7}));
  const PrintedJson& operations = document.at("operations");
  EXPECT_EQ(lines_of(csv.out).size(), operations.size() + 1);
  const PrintedJson& first = operations.at(0);  // stage 1 begins by waiting
  EXPECT_EQ(first.at("operation"), "receive");
  EXPECT_EQ(first.at("peer_rank"), 1);
  EXPECT_EQ(first.at("message_bytes"), 128 * 2 * 512 / 2 * 2);  // n·h over t, two bytes each
}

TEST(ProgramCommand, RefusesARankThatDoesNotExist) {
  for (const char* options : {"--rank 8", "--rank -1", "--rank 2147483648"}) {
    const Ran ran = run_trainyard(program(eight_ranks(), options));
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_NE(ran.err.find("allowed 0 to 7"), std::string::npos) << ran.err;
  }
  for (const char* rank : {"''", "one", "1e3", "99999999999999999999"}) {
    const Ran ran = run_trainyard(program(eight_ranks(), std::string("--rank ") + rank));
    EXPECT_EQ(ran.status, 2) << rank;
    EXPECT_NE(ran.err.find("allowed the number of a rank"), std::string::npos) << ran.err;
  }
  EXPECT_EQ(run_trainyard(program(eight_ranks(), "")).status, 2);
}

TEST(ProgramCommand, PrintsWhatComesFromTheHostAndGoes) {
  const Ran ran =
      run_trainyard(program(eight_ranks(R"(, "offload": { "gradients": "host" })"), "--rank 0"));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("copy"), std::string::npos);
}

// With the optimizer on the host, fp32 gradients go there and bf16 weights come back. A layer has
// 4h² weights of attention and 3h·4h of a gated MLP, over t, and h for each of two norms.
TEST(ProgramCommand, SaysHowManyBytesACopyMoves) {
  const Ran ran = run_trainyard(
      program(eight_ranks(R"(, "offload": { "optimizer": "host" })"), "--rank 0 --format json"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson document = PrintedJson::parse(ran.out);
  std::vector<int> bytes;
  for (const PrintedJson& operation : document.at("operations")) {
    if (operation.at("operation") == "copy" && operation.at("layer") == 1) {
      bytes.push_back(operation.at("message_bytes").get<int>());
    }
  }
  const int layer = (4 * 512 * 512 + 3 * 512 * 2048) / 2 + 2 * 512;
  EXPECT_EQ(bytes, (std::vector<int>{4 * layer, 2 * layer}));
}

}  // namespace
}  // namespace trainyard
