// A memo of a pure function: a hash table of fixed size that keeps its values. Entries are never
// changed or removed, so they are read without a lock; where the few places for a key are taken,
// the value is computed anew and not kept. Safe from several threads.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace trainyard {

template <class Key, class Value>
class Memo {
 public:
  // `places`: a power of two. An entry is allocated when it is filled: most jobs fill few, and to
  // allocate all takes as long as to price hundreds of plans.
  explicit Memo(std::size_t places)
      : places_(places), entries_(std::make_unique<std::atomic<const Entry*>[]>(places)) {}
  // Walks the entries, not the places: a memo of few plans has thousands of empty ones.
  ~Memo() {
    for (const Entry* entry = newest_.load(); entry != nullptr;) {
      const std::unique_ptr<const Entry> owned(std::exchange(entry, entry->older));
    }
  }
  Memo(const Memo&) = delete;
  Memo& operator=(const Memo&) = delete;

  // `hash`: of the key. `make()`: its value.
  template <class Make>
  Value value(const Key& key, std::uint64_t hash, const Make& make) const {
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      const std::size_t place = (static_cast<std::size_t>(hash >> 32) + probe) & (places_ - 1);
      const Entry* entry = entries_[place].load(std::memory_order_acquire);
      if (entry == nullptr) {
        const Value made = make();
        keep(place, {key, made, nullptr});
        return made;
      }
      if (entry->key == key) return entry->value;
    }
    return make();
  }

 private:
  static constexpr std::size_t kProbes = 4;
  struct Entry {
    Key key;
    Value value;
    const Entry* older;  // the one kept before it
  };
  // Does nothing if another thread has filled the place meanwhile.
  void keep(std::size_t place, Entry filled) const {
    auto entry = std::make_unique<Entry>(std::move(filled));
    const Entry* empty = nullptr;
    if (!entries_[place].compare_exchange_strong(empty, entry.get())) return;
    Entry* const kept = entry.release();
    kept->older = newest_.load();
    while (!newest_.compare_exchange_weak(kept->older, kept)) {
    }
  }
  std::size_t places_;
  std::unique_ptr<std::atomic<const Entry*>[]> entries_;
  mutable std::atomic<const Entry*> newest_ = nullptr;
};

// Hash of a memo's key, mixed part by part.
class KeyHash {
 public:
  template <class Part>
  KeyHash& mix(Part part) {
    hash_ = (hash_ ^ bits(part)) * 0x9E3779B97F4A7C15U;
    hash_ ^= hash_ >> 29;
    return *this;
  }
  std::uint64_t value() const { return hash_; }

 private:
  // Most doubles here end in zero bits, and the last bits of a product depend on the last bits of
  // its factors alone; so the first bits are folded in.
  static std::uint64_t bits(double part) {
    const auto all = std::bit_cast<std::uint64_t>(part);
    return all ^ all >> 32;
  }
  template <class Part>
  static std::uint64_t bits(Part part) {
    return static_cast<std::uint64_t>(part);
  }
  std::uint64_t hash_ = 0;
};

}  // namespace trainyard
