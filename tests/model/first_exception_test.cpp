#include "model/first_exception.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

namespace trainyard {
namespace {

TEST(FirstException, IsThrownAgainWhereTheThreadsAreJoined) {
  FirstException failed;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { failed.keep_of([] { throw std::bad_alloc(); }); });
  }
  threads.clear();
  EXPECT_THROW(failed.rethrow(), std::bad_alloc);
}

TEST(FirstException, IsTheFirstOfAll) {
  FirstException failed;
  failed.keep_of([] { throw std::invalid_argument("first"); });
  failed.keep_of([] { throw std::bad_alloc(); });
  EXPECT_THROW(failed.rethrow(), std::invalid_argument);
}

TEST(FirstException, IsNoneWhereNothingThrows) {
  FirstException failed;
  bool done = false;
  failed.keep_of([&] { done = true; });
  EXPECT_NO_THROW(failed.rethrow());
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace trainyard
