// Keeps the first exception that any of several threads throws and throws it again where they are
// joined. An exception that leaves a thread would end the program.
#pragma once

#include <atomic>
#include <exception>
#include <system_error>
#include <utility>

namespace trainyard {

class FirstException {
 public:
  // Calls `work` and keeps what it throws, if it is the first. May be called on any thread.
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

// Starts one more thread in `threads` that runs `work` and keeps its exception in `failed`. Returns
// false if the process may have no more threads; the other threads then have to do its work.
// `Threads` is a vector of std::jthread, which model/ itself does not use.
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
