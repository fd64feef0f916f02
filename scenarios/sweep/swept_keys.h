// The keys that vary in a sweep, each with the values that it takes, and where the values of a
// point are among them: what tables and charts of results are laid out by.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scenarios/sweep/sweep.h"

namespace trainyard {

struct SweptKey {
  std::string name;                 // dotted
  std::vector<std::string> values;  // as one would type them, each once; empty: no such key
  bool is_listed = true;            // all values are known beforehand, in their order
};

class SweptKeys {
 public:
  // Refers to `sweep`.
  explicit SweptKeys(const Sweep& sweep);

  const std::vector<SweptKey>& keys() const { return keys_; }
  // Of each key the place of the point's value. A value that is new is appended to its key.
  std::vector<int> places(std::int64_t point);

 private:
  int place_of(std::size_t key, const SweepValue& value);

  const Sweep& sweep_;
  std::vector<SweptKey> keys_;
  std::vector<std::map<std::string, int>> known_;  // of each key: by the value's JSON
  std::vector<SweepValue> values_;
};

}  // namespace trainyard
