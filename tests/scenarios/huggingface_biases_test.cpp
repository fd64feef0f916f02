// Which linear layers of a Hugging Face network have biases, and which norms it ends with. The
// expected numbers are those of transformers 4.57, which builds the network of each config.
#include <gtest/gtest.h>

#include <string>

#include "tests/scenarios/uncounted_parameters.h"

namespace trainyard {
namespace {

double parameters_of(const std::string& more) {
  const auto read = parse_huggingface(R"({"hidden_size": 64, "intermediate_size": 128,
      "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 100,
      "num_hidden_layers": 4, )" + more + "}",
                                      "config");
  EXPECT_TRUE(read.has_value()) << read.error().where << ": " << read.error().message;
  return read ? parameter_count(read->model, 0) + uncounted_parameters(*read) : 0;
}

// Code with fixed biases reads neither key.
TEST(HuggingFaceBiases, AreThoseOfTheCodeWhereItAsksNoKey) {
  EXPECT_EQ(parameters_of(R"("model_type": "qwen2", "attention_bias": false)"), 177'984);
  EXPECT_EQ(parameters_of(R"("model_type": "mistral", "attention_bias": true, "mlp_bias": true)"),
            177'216);
}

TEST(HuggingFaceBiases, AreNoneWhereTheirKeyIsNull) {
  EXPECT_EQ(parameters_of(R"("model_type": "gpt_neox")"), 146'816);
  EXPECT_EQ(parameters_of(R"("model_type": "gpt_neox", "attention_bias": null)"), 145'792);
}

// Experts and router have biases whatever `attention_bias` says.
TEST(HuggingFaceBiases, OfTheExpertsOfGptOssAreCountedWithoutThoseOfAttention) {
  const std::string oss = R"("model_type": "gpt_oss", "head_dim": 16, "num_local_experts": 8,
                             "num_experts_per_tok": 2, "attention_bias": )";
  EXPECT_EQ(parameters_of(oss + "true"), 878'704);
  EXPECT_EQ(parameters_of(oss + "false"), 877'680);
}

// Not every OPT has the norm after the last layer.
TEST(HuggingFaceNorms, OfOptMayEndBeforeTheHead) {
  const auto read = parse_huggingface(R"({"model_type": "opt", "hidden_size": 64, "ffn_dim": 128,
      "num_attention_heads": 4, "num_hidden_layers": 4, "vocab_size": 100,
      "_remove_final_layer_norm": true})",
                                      "opt");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(parameter_count(read->model, 32) + uncounted_parameters(*read), 142'464);
}

}  // namespace
}  // namespace trainyard
