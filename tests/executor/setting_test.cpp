// The initial weights, compared with their definition written out (a hash of name, layer, row and
// column), and what dropout keeps.
#include "executor/setting.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "executor/rank_run.h"

namespace trainyard {
namespace {

double number_at(const std::string& name, std::uint64_t seed, std::uint64_t layer_plus_1,
                 std::uint64_t row, std::uint64_t column) {
  std::uint64_t hash = 0;
  for (const char letter : name) hash = mixed(hash + static_cast<unsigned char>(letter));
  return uniform_signed(mixed(mixed(hash + seed + layer_plus_1) + row) + column);
}

Setting setting_of_four() {
  Setting setting;
  setting.seed = 42;
  setting.model.hidden_size = 4;
  setting.model.vocabulary = 10;
  return setting;
}

TEST(WeightRow, HasTheNumbersOfItsPlace) {
  const Setting setting = setting_of_four();
  const WeightRow row(setting, {"output projection weight", 2, 7});
  for (const int column : {0, 1, 3}) {
    const auto at = static_cast<std::uint64_t>(column);
    EXPECT_EQ(row[column], 0.5 * number_at("output projection weight", 42, 3, 7, at));
  }
}

TEST(WeightRow, OfAScaleIsAboutOne) {
  const Setting setting = setting_of_four();
  const WeightRow row(setting, {"final norm scale", -1, 1});
  EXPECT_EQ(row[0], 1 + 0.3 * number_at("final norm scale", 42, 0, 1, 0));
}

TEST(WeightRow, ThatPadsTheVocabularyIsZero) {
  const Setting setting = setting_of_four();
  EXPECT_NE(WeightRow(setting, {"head weight", -1, 9})[0], 0);
  EXPECT_EQ(WeightRow(setting, {"head weight", -1, 10})[0], 0);
  EXPECT_EQ(WeightRow(setting, {"embedding table", -1, 10})[3], 0);
}

TEST(WeightRow, OfATiedHeadIsTheEmbeddings) {
  Setting setting = setting_of_four();
  setting.model.tied_embeddings = true;
  EXPECT_EQ(WeightRow(setting, {"head weight", -1, 3})[2],
            WeightRow(setting, {"embedding table", -1, 3})[2]);
}

// Two columns share a word of the hash; its low half is that of the even column.
TEST(Dropout, KeepsWhatTheHashOfItsPlaceDraws) {
  const std::uint64_t row = mixed(mixed(mixed(42 + 1 + 3) + 6) + 8);
  for (const std::int64_t column : {0, 1, 6, 7, 4095}) {
    const std::uint64_t word = mixed(row + static_cast<std::uint64_t>(column / 2) + 1);
    const double drawn =
        std::ldexp(static_cast<double>(column % 2 == 0 ? word & 0xffffffffU : word >> 32), -32);
    for (const double rate : {0.0, 0.1, 0.5, 0.9}) {
      EXPECT_EQ(is_kept(42, {1, 2, 5, 7, column}, rate), drawn >= rate) << column << ' ' << rate;
    }
  }
}

// The shares are within five standard deviations of those of independent draws.
TEST(Dropout, KeepsEachNumberWhateverBecomesOfOthers) {
  constexpr int kRows = 1000, kColumns = 128;
  constexpr double kRate = 0.1;
  const auto kept = [](int row, int column) { return is_kept(7, {1, 0, 0, row, column}, kRate); };
  int alone = 0, with_next = 0, with_other_word = 0, with_next_row = 0, all = 0;
  for (int row = 0; row + 1 < kRows; ++row) {
    for (int column = 0; column + 2 < kColumns; ++column, ++all) {
      if (!kept(row, column)) continue;
      ++alone;
      with_next += kept(row, column + 1) ? 1 : 0;
      with_other_word += kept(row, column + 2) ? 1 : 0;
      with_next_row += kept(row + 1, column) ? 1 : 0;
    }
  }
  const auto expect_share = [&](int found, double share) {
    EXPECT_NEAR(found, share * all, 5 * std::sqrt(share * (1 - share) * all));
  };
  expect_share(alone, 1 - kRate);
  for (const int both : {with_next, with_other_word, with_next_row}) {
    expect_share(both, (1 - kRate) * (1 - kRate));
  }
}

// Settings for which a GPU would have to keep something elsewhere.
TEST(NotExecuted, NamesWhatTheCudaBackendHasNot) {
  Setting setting;
  setting.plan.offload.gradients = OffloadTarget::nvme;
  auto refused = not_executed(setting, BackendKind::cuda);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->where, "/plan/offload");
  setting.plan.offload = {};
  refused = not_executed(setting, BackendKind::cuda);
  EXPECT_TRUE(!refused || refused->where != "/plan/offload");
}

}  // namespace
}  // namespace trainyard
