// Another process reads what a rank publishes. If the disk is full, making the board fails with a
// message.
#include "executor/supervision/board.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace trainyard {
namespace {

TEST(Board, ShowsWhatTheRankWroteToWhoeverOpensIt) {
  auto board = Board::create(testing::TempDir(), 3, 10, 2);
  ASSERT_TRUE(board);
  board->head().operation = 7;
  board->steps()[1].loss = 2.5;
  board->operations()[9].total = 0.25;
  board->begun()[9] = 5;
  auto seen = Board::open(testing::TempDir(), 3);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->head().process, getpid());
  EXPECT_EQ(seen->head().operation, 7);
  EXPECT_EQ(seen->steps()[1].loss, 2.5);
  EXPECT_EQ(seen->operations()[9].total, 0.25);
  EXPECT_EQ(seen->begun()[9], 5);
  EXPECT_EQ(seen->begun()[8], 0);
  EXPECT_FALSE(Board::open(testing::TempDir(), 4));
}

TEST(Board, IsNotMadeOfFewerBytesThanItsHead) {
  const auto board = Board::copied("");
  ASSERT_FALSE(board);
  EXPECT_NE(board.error().message.find("came as 0 bytes"), std::string::npos)
      << board.error().message;
}

// A limit on the size of files acts on a writer like a full disk.
TEST(Board, CannotBeMadeOnAFullDisk) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit nothing{16, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &nothing);
  const auto board = Board::create(testing::TempDir(), 5, 10, 2);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  ASSERT_FALSE(board);
  EXPECT_NE(board.error().message.find("cannot be written"), std::string::npos);
}

// The operating system has no memory: the file exists, but cannot be mapped into this process.
TEST(Board, SaysThatThereIsNoMemoryForIt) {
  constexpr rlim_t kMargin = rlim_t{4} << 20;  // for all else
  std::ifstream statistics("/proc/self/statm");
  rlim_t pages = 0;
  statistics >> pages;
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit little{pages * static_cast<rlim_t>(getpagesize()) + kMargin, before.rlim_max};
  setrlimit(RLIMIT_AS, &little);
  const auto board = Board::create(testing::TempDir(), 7, 1 << 20, 2);  // 24 MiB
  setrlimit(RLIMIT_AS, &before);
  ASSERT_FALSE(board);
  EXPECT_EQ(board.error().message, "cannot be written: " + std::generic_category().message(ENOMEM));
}

}  // namespace
}  // namespace trainyard
