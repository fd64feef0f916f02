#include "scenarios/rank_status.h"

#include <gtest/gtest.h>

#include <limits>

namespace trainyard {
namespace {

TEST(RankStatus, IsReadBackFromItsLine) {
  const std::vector<RankStatus> ranks = {
      {.rank = 0,
       .host = "a\"b",
       .state = "running",
       .steps_done = 3,
       .steps = 10,
       .operation = 12,
       .operations = 90,
       .at = "linear (mlp up), forward",
       .call = "",
       .step_time = Seconds(0.25),
       .loss = 6.5,
       .peak_memory = Bytes(1e9)},
      {.rank = 1, .state = "absent"},
  };
  const std::string line = rank_status_line(ranks);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(read_rank_status(line), ranks);
}

TEST(RankStatus, IsNotReadFromWhatElseAProgramSays) {
  EXPECT_FALSE(read_rank_status("trainyard: rank 1 was killed"));
  EXPECT_FALSE(read_rank_status(R"({"ranks":[{"rank":0}]})"));
  EXPECT_FALSE(read_rank_status(R"({"ranks":[{"rank":"a")"));
  EXPECT_FALSE(read_rank_status(R"({"ranks":7})"));
}

TEST(RankStatus, ReadsHowFarACalibrationIs) {
  EXPECT_EQ(read_progress(progress_line(0.25)), 0.25);
  EXPECT_EQ(read_progress(R"({"progress":0})"), 0.0);
  for (const char* other : {"25 %", R"({"progress":"a"})", R"({"progress":1.5})",
                            R"({"progress":-1})", R"({"progress":)", R"({"ranks":[]})"}) {
    EXPECT_FALSE(read_progress(other)) << other;
  }
}

// JSON has no such number.
TEST(RankStatus, WritesALossThatIsNoNumber) {
  const auto read =
      read_rank_status(rank_status_line({{.loss = std::numeric_limits<double>::quiet_NaN()}}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->front().loss, 0);
}

}  // namespace
}  // namespace trainyard
