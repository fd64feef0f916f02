// Every reader of outside files accepts its seeds. Anything else it accepts or refuses in one line:
// seeds that are cut, repeated, or changed in bytes, numbers and brackets, the same on every
// machine. This does for a moment what libFuzzer does for minutes, so that no reader is forgotten.
#include "tests/fuzz/readers.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string_view>

namespace trainyard {
namespace {

namespace fs = std::filesystem;

struct Reader {
  const char* name;
  bool (*read)(const std::string&);
};
constexpr auto kReaders = std::to_array<Reader>({TRAINYARD_READERS});

std::vector<std::string> seeds_of(const std::string& reader) {
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(TRAINYARD_SEEDS) / reader)) {
    files.insert(entry.path());
  }
  std::vector<std::string> seeds;
  for (const fs::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return seeds;
}

constexpr auto kPieces = std::to_array<std::string_view>({"",
                                                          "0",
                                                          "-1",
                                                          "1e308",
                                                          "99999999999999999999",
                                                          "4611686018427387904",
                                                          "\"",
                                                          "null",
                                                          "{",
                                                          "]",
                                                          "[[[[",
                                                          "\n",
                                                          "&a;",
                                                          "*a",
                                                          "$(x)",
                                                          "${y}",
                                                          "\xff",
                                                          "nan",
                                                          "1e-320",
                                                          ".",
                                                          "true"});

// The text with a part replaced or repeated, or cut off.
std::string broken(std::string text, std::mt19937& random) {
  const std::size_t at = random() % (text.size() + 1);
  const std::size_t size = random() % 12;
  if (random() % 4 == 0) return text.insert(at, text.substr(at / 2, 8 * size));
  if (random() % 4 == 0) return text.substr(0, at);
  return text.replace(at, size, kPieces[random() % kPieces.size()]);
}

class EveryReader : public ::testing::TestWithParam<Reader> {};

TEST_P(EveryReader, TakesItsSeeds) {
  const auto seeds = seeds_of(GetParam().name);
  ASSERT_FALSE(seeds.empty());
  for (const std::string& seed : seeds) EXPECT_TRUE(GetParam().read(seed)) << seed.substr(0, 300);
}

// A reader that breaks a rule of tests/fuzz/readers.h ends the program.
TEST_P(EveryReader, AnswersOrRefusesWhateverItIsGiven) {
  constexpr int kTexts = 200;
  std::mt19937 random(20261121);
  int refused = 0;
  for (const std::string& seed : seeds_of(GetParam().name)) {
    std::string text = seed;
    for (int i = 0; i < kTexts; ++i) {
      text = broken(i % 4 == 0 ? seed : std::move(text), random);
      if (!GetParam().read(text)) ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(OfOutsideFiles, EveryReader, ::testing::ValuesIn(kReaders),
                         [](const auto& reader) { return std::string(reader.param.name); });

}  // namespace
}  // namespace trainyard
