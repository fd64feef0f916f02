// What threads that work side by side throw: an exception that leaves a thread ends the program, so
// the first one is kept and thrown again where the threads are joined.
#pragma once

#include <atomic>
#include <exception>

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

}  // namespace trainyard
