// The keys that vary in a sweep, each with the values that it takes, and the places of a point's
// values among them. Tables and charts of results are laid out by these.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scenarios/sweep/sweep.h"

namespace trainyard {

struct SweptKey {
  std::string name;                 // dotted
  std::vector<std::string> values;  // as one would type them, each once; "": the key is absent
  bool is_listed = true;            // all values are known beforehand and in order
};

class SweptKeys {
 public:
  // Requires: `sweep` outlives this.
  explicit SweptKeys(const Sweep& sweep);

  const std::vector<SweptKey>& keys() const { return keys_; }
  // For each key the index of the point's value. A value not seen before is appended to its key.
  std::vector<int> places(std::int64_t point);

 private:
  int place_of(std::size_t key, const SweepValue& value);

  const Sweep& sweep_;
  std::vector<SweptKey> keys_;
  std::vector<std::map<std::string, int>> known_;  // for each key: JSON of a value → its index
  std::vector<SweepValue> values_;
};

}  // namespace trainyard
