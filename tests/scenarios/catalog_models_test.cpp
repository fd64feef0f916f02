// Parameter counts of the catalog's models against published ones.
#include <gtest/gtest.h>

#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"

namespace trainyard {
namespace {

Transformer catalog_model(const std::string& name) {
  Transformer model;
  const Document nowhere;
  const auto read = read_reference(model_section(), Json(name), model, {&nowhere, ""});
  EXPECT_TRUE(read.has_value()) << read.error().message;
  return model;
}

std::string test_name(std::string name) {
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

// A count that was published exactly, and how many of its parameters the document cannot express.
struct ExactCount {
  std::string model;
  double published;
  double not_expressed = 0;
};

class ExactCounts : public ::testing::TestWithParam<ExactCount> {};

TEST_P(ExactCounts, IsThePublishedOne) {
  const Transformer model = catalog_model(GetParam().model);
  EXPECT_EQ(parameter_count(model, 2048) + GetParam().not_expressed, GetParam().published);
}

// BLOOM: model cards; the norm after the embedding has 2h. Qwen and DeepSeek: half the bytes of the
// safetensors index. Mistral Small: its index. Gemma: the sum of embedding and other parameters in
// Table 2 of the reports; the norms after attention and MLP of Gemma 2 have 2h per layer.
INSTANTIATE_TEST_SUITE_P(
    Published, ExactCounts,
    ::testing::Values(ExactCount{"bloom-560m", 559'214'592, 2.0 * 1024},
                      ExactCount{"bloom-1b1", 1'065'314'304, 2.0 * 1536},
                      ExactCount{"bloom-1b7", 1'722'408'960, 2.0 * 2048},
                      ExactCount{"bloom-3b", 3'002'557'440, 2.0 * 2560},
                      ExactCount{"bloom-7b1", 7'069'016'064, 2.0 * 4096},
                      ExactCount{"bloom-176b", 176'247'271'424, 2.0 * 14336},
                      ExactCount{"qwen2.5-14b", 29'540'067'328 / 2.0},
                      ExactCount{"qwen2.5-32b", 65'527'752'704 / 2.0},
                      ExactCount{"qwen2.5-72b", 145'412'407'296 / 2.0},
                      ExactCount{"qwen3-4b", 8'044'936'192 / 2.0},
                      ExactCount{"qwen3-8b", 16'381'470'720 / 2.0},
                      ExactCount{"qwen3-14b", 29'536'614'400 / 2.0},
                      ExactCount{"mistral-small-24b", 23'572'403'200},
                      ExactCount{"deepseek-v2-lite", 31'412'968'448 / 2.0},
                      ExactCount{"gemma-2b", 524'550'144.0 + 1'981'884'416.0},
                      ExactCount{"gemma-7b", 786'825'216.0 + 7'751'248'896.0},
                      ExactCount{"gemma-2-2b", 590'118'912.0 + 2'024'517'888.0, 26 * 2.0 * 2304},
                      ExactCount{"gemma-2-9b", 917'962'752.0 + 8'324'201'984.0, 42 * 2.0 * 3584},
                      ExactCount{"gemma-2-27b", 1'180'237'824.0 + 26'047'480'320.0,
                                 46 * 2.0 * 4608}),
    [](const auto& tested) { return test_name(tested.param.model); });

// A count that was published rounded, in billions.
struct RoundedCount {
  std::string model;
  double billions;
  double rounding;
  std::int64_t sequence = 2048;  // of learned positions
};

class RoundedCounts : public ::testing::TestWithParam<RoundedCount> {};

TEST_P(RoundedCounts, IsThePublishedOne) {
  const RoundedCount& expected = GetParam();
  const double found = parameter_count(catalog_model(expected.model), expected.sequence) / 1e9;
  EXPECT_NEAR(found, expected.billions, expected.rounding);
}

// The tolerance is half of the last published digit, or a whole one where the authors cut digits
// off (PaLM, LLaMA 65B, Qwen2.5, MPT). A name that is one number ("40B") counts with its leading
// digit.
INSTANTIATE_TEST_SUITE_P(
    Published, RoundedCounts,
    ::testing::Values(
        RoundedCount{"gpt2-124m", 0.124, 0.0005, 1024},
        RoundedCount{"gpt2-355m", 0.355, 0.0005, 1024},
        RoundedCount{"gpt2-774m", 0.774, 0.0005, 1024},
        RoundedCount{"gpt2-1.5b", 1.558, 0.0005, 1024}, RoundedCount{"opt-125m", 0.125, 0.0005},
        RoundedCount{"opt-1.3b", 1.3, 0.05}, RoundedCount{"opt-2.7b", 2.7, 0.05},
        RoundedCount{"opt-6.7b", 6.7, 0.05}, RoundedCount{"opt-13b", 13, 0.5},
        RoundedCount{"opt-30b", 30, 0.5}, RoundedCount{"opt-66b", 66, 0.5},
        RoundedCount{"opt-175b", 175, 0.5}, RoundedCount{"mt-nlg-530b", 530, 0.5},
        RoundedCount{"palm-8b", 8.63, 0.01}, RoundedCount{"palm-62b", 62.50, 0.01},
        RoundedCount{"palm-540b", 540.35, 0.01}, RoundedCount{"llama-7b", 6.7, 0.05},
        RoundedCount{"llama-13b", 13.0, 0.05}, RoundedCount{"llama-33b", 32.5, 0.05},
        RoundedCount{"llama-65b", 65.2, 0.1}, RoundedCount{"llama-2-13b", 13, 0.5},
        RoundedCount{"mistral-7b", 7.24, 0.005}, RoundedCount{"mistral-large-123b", 123, 0.5},
        RoundedCount{"qwen2.5-0.5b", 0.49, 0.005}, RoundedCount{"qwen2.5-1.5b", 1.54, 0.005},
        RoundedCount{"qwen2.5-3b", 3.09, 0.005}, RoundedCount{"qwen2.5-7b", 7.61, 0.01},
        RoundedCount{"qwen3-0.6b", 0.6, 0.05}, RoundedCount{"qwen3-1.7b", 1.7, 0.05},
        RoundedCount{"deepseek-v2", 236, 0.5}, RoundedCount{"falcon-7b", 7, 0.5},
        RoundedCount{"falcon-40b", 40, 5}, RoundedCount{"falcon-180b", 180, 5},
        RoundedCount{"mpt-7b", 6.7, 0.1}, RoundedCount{"mpt-30b", 29.95, 0.01}),
    [](const auto& tested) { return test_name(tested.param.model); });

// Gemma 3 report, Table 1: parameters without the embedding, whose column also counts the
// projection of images. The norms after attention and MLP have 2h per layer.
TEST(Gemma3, HasThePublishedParametersBesideTheEmbedding) {
  const auto check = [](const char* name, double millions) {
    const Transformer model = catalog_model(name);
    const double embedding = static_cast<double>(model.vocabulary) * model.hidden_size;
    const double norms = 2.0 * model.layers * model.hidden_size;
    EXPECT_NEAR((parameter_count(model, 2048) - embedding + norms) / 1e6, millions, 0.5) << name;
  };
  check("gemma-3-1b", 698);
  check("gemma-3-4b", 3209);
  check("gemma-3-12b", 10759);
  check("gemma-3-27b", 25600);
}

// DeepSeek-V2 report, section 1: 21B of the 236B parameters are activated for each token.
TEST(DeepSeekV2, ActivatesThePublishedParameters) {
  EXPECT_NEAR(active_parameter_count(catalog_model("deepseek-v2"), 4096) / 1e9, 21, 0.5);
}

}  // namespace
}  // namespace trainyard
