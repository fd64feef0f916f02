#include "model/first_exception.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace trainyard {
namespace {

TEST(FirstException, IsThrownAgainWhereTheThreadsAreJoined) {
  FirstException failed;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(add_thread(threads, failed, [] { throw std::bad_alloc(); }));
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

// Throws as std::jthread does when the system has no thread left.
struct NoThreads {
  template <typename Work>
  void emplace_back(const Work& /*work*/) {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  }
};

TEST(FirstException, IsNoneOfAThreadThatCannotStart) {
  FirstException failed;
  NoThreads threads;
  EXPECT_FALSE(add_thread(threads, failed, [] {}));
  EXPECT_NO_THROW(failed.rethrow());
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
