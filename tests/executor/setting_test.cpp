// Where weights start, against the definition written out: a hash of name, layer, row and column.
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
  return uniform(mixed(mixed(hash + seed + layer_plus_1) + row) + column);
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

// Where a GPU would have to keep something elsewhere.
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
