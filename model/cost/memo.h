// Values of a pure function that were asked for before. Where the places for a key are taken the
// value is made anew, so that a memo never grows and nothing in it is ever changed or taken out:
// what is there can be read without a lock. Safe from several threads.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace trainyard {

template <class Key, class Value>
class Memo {
 public:
  // `places`: a power of two.
  explicit Memo(std::size_t places)
      : places_(places),
        states_(std::make_unique<std::atomic<State>[]>(places)),
        entries_(std::make_unique_for_overwrite<Entry[]>(places)) {}

  // `hash`: of the key. `make()`: its value.
  template <class Make>
  Value value(const Key& key, std::uint64_t hash, const Make& make) const {
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      const std::size_t place = (static_cast<std::size_t>(hash >> 32) + probe) & (places_ - 1);
      const Known& known = entries_[place].known;
      State state = states_[place].load(std::memory_order_acquire);
      if (state == State::ready) {
        if (known.key == key) return known.value;
        continue;
      }
      const Value made = make();
      if (state == State::empty &&
          states_[place].compare_exchange_strong(state, State::being_filled)) {
        std::construct_at(&entries_[place].known, key, made);
        states_[place].store(State::ready, std::memory_order_release);
      }
      return made;
    }
    return make();
  }

 private:
  static constexpr std::size_t kProbes = 4;
  enum class State : std::uint8_t { empty, being_filled, ready };
  struct Known {
    Known(const Key& of, const Value& found) : key(of), value(found) {}
    Key key;
    Value value;
  };
  static_assert(std::is_trivially_destructible_v<Known>);
  // Holds nothing until it is filled: most jobs fill few, and to write them all takes as long as to
  // price hundreds of plans.
  union Entry {
    Entry() {}  // NOLINT(modernize-use-equals-default): that one would be deleted
    Known known;
  };
  std::size_t places_;
  std::unique_ptr<std::atomic<State>[]> states_;
  std::unique_ptr<Entry[]> entries_;
};

// Of a memo's key, part by part.
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
  // Of most numbers the last bits are 0, and a product's last bits depend on those alone.
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
