// What threads that work side by side throw: an exception that leaves a thread ends the program, so
// the first one is kept and thrown again where the threads are joined.
#pragma once

#include <atomic>
#include <exception>
#include <system_error>
#include <utility>

namespace trainyard {

class FirstException {
 public:
  // On any thread.
  template <typename Work>
  void keep_of(const Work& work) noexcept {
    try {
      work();
    } catch (...) {
      if (!is_taken_.test_and_set()) first_ = std::current_exception();
    }
  }
  // Requires: the threads are joined.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::atomic_flag is_taken_;
  std::exception_ptr first_;
};

// One more thread in `threads`, whose work is kept of. False: the process may have no more, and
// what it should have done is left to the others. `Threads` is a vector of std::jthread, which
// model/ itself does without.
template <typename Threads, typename Work>
bool add_thread(Threads& threads, FirstException& failed, Work work) {
  try {
    threads.emplace_back([&failed, work = std::move(work)] { failed.keep_of(work); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

}  // namespace trainyard
