// Rates of groups that were computed before, by what describes the groups: a linked list that only
// grows, at its head, so that threads can read it while others add to it, without a lock.
#pragma once

#include <atomic>
#include <memory>

namespace trainyard {

template <typename Key, typename Rates>
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

  // Null: not known yet.
  const Rates* find(const Key& key) const {
    for (const Known* known = head_.load(); known != nullptr; known = known->next) {
      if (known->key == key) return &known->rates;
    }
    return nullptr;
  }
  // If two threads add the same key, both entries are kept.
  const Rates& add(const Key& key, const Rates& rates) {
    auto fresh = std::make_unique<Known>(Known{key, rates, head_.load()});
    while (!head_.compare_exchange_weak(fresh->next, fresh.get())) {
    }
    return fresh.release()->rates;  // the list has it now
  }

 private:
  struct Known {
    Key key;
    Rates rates;
    Known* next = nullptr;
  };
  std::atomic<Known*> head_ = nullptr;
};

}  // namespace trainyard
