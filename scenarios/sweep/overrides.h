// A key of a scenario that varies, and how a value is put in its place. Where the key leads into a
// document that the scenario only names (`cluster.node.nic_bandwidth` where the node is
// "dgx-h100-80gb"), that document is first put in the place of its name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/fields/place.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

struct SweepColumn {
  std::string name;                // dotted: "plan.tensor_parallel"
  std::string quoted;              // the name as JSON text
  std::vector<std::string> steps;  // its steps from the root
  // For each step but the last: the kind of document that a text found there names; empty: none.
  std::vector<std::string> kinds;
};

// The column of a key "plan.tensor_parallel" or "/plan/tensor_parallel".
SweepColumn column_of(std::string_view key);

// Whether `other` is `key` or one of the keys on the way to it.
bool leads_to(const SweepColumn& key, const SweepColumn& other);

// Puts `value` into `root`, an object that has the column's first step as a key. Missing objects on
// the way are created. Relative paths start from `place`.
Expected<void> put(const SweepColumn& column, const Json& value, Json& root, const Place& place);

// The value of a column in `root`; nullptr: it has none.
const Json* find(const SweepColumn& column, const Json& root);

}  // namespace trainyard
