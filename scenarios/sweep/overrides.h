// A key of a scenario that varies, and how a value is put in its place. A key that leads into what
// is written as a name (`cluster.node.nic_bandwidth` where the node is "dgx-h100-80gb") opens the
// document of that name first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/fields/place.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

struct SweepColumn {
  std::string name;                // dotted: "plan.tensor_parallel"
  std::string quoted;              // the same as JSON
  std::vector<std::string> steps;  // the same, from the root: "plan", "tensor_parallel"
  // For each step but the last: the kind of document that text found there refers to; empty: none.
  std::vector<std::string> kinds;
};

// From "plan.tensor_parallel" or "/plan/tensor_parallel".
SweepColumn column_of(std::string_view key);

// `key`, or every key that it leads through, of `other`.
bool leads_to(const SweepColumn& key, const SweepColumn& other);

// Puts `value` into `root`, an object of which the column's first step is a key. Objects on the way
// that do not stand there are made. `place`: what paths are relative to.
Expected<void> put(const SweepColumn& column, const Json& value, Json& root, const Place& place);

// The value there; nullptr: none.
const Json* find(const SweepColumn& column, const Json& root);

}  // namespace trainyard
