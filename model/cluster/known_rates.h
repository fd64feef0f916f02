// The rates of group shapes that were counted once: a list that only grows, at its head, so that
// threads read it while others add.
#pragma once

#include <atomic>
#include <memory>

#include "model/cluster/group.h"

namespace trainyard {

template <typename Rates>
class KnownRates {
 public:
  KnownRates() = default;
  ~KnownRates() {
    for (Known* known = head_; known != nullptr;) {
      const std::unique_ptr<Known> owned(known);
      known = owned->next;
    }
  }
  KnownRates(const KnownRates&) = delete;
  KnownRates& operator=(const KnownRates&) = delete;

  // Null: not known.
  const Rates* find(GroupShape shape) const {
    for (const Known* known = head_.load(); known != nullptr; known = known->next) {
      if (known->shape == shape) return &known->rates;
    }
    return nullptr;
  }
  // Of two threads that add the same both are kept.
  const Rates& add(GroupShape shape, const Rates& rates) {
    auto fresh = std::make_unique<Known>(Known{shape, rates, head_.load()});
    while (!head_.compare_exchange_weak(fresh->next, fresh.get())) {
    }
    return fresh.release()->rates;  // the list has it now
  }

 private:
  struct Known {
    GroupShape shape;
    Rates rates;
    Known* next = nullptr;
  };
  std::atomic<Known*> head_ = nullptr;
};

}  // namespace trainyard
