// A condition that the points of a sweep must meet, such as "plan.tensor_parallel *
// plan.pipeline_parallel <= 16 and cluster.nodes > 2": keys and numbers joined by + - * / %,
// compared with each other, joined by `and` and `or`. Quantities are in base units (`"80 GB"` is
// 8e10), true is 1; other text can only be compared for equality.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/expected.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

using ConstraintValue = std::variant<double, std::string>;

ConstraintValue constraint_value_of(const Json& value);

// What a key stands for: the position of a value that varies, or a constant.
using KeyMeaning = std::variant<std::size_t, ConstraintValue>;

class Constraint {
 public:
  // Parses a condition; `key` says what a key means. An error's message says where in the text it
  // is.
  static Expected<Constraint> parse(
      std::string_view text, const std::function<Expected<KeyMeaning>(const std::string&)>& key);

  // Whether the condition holds; `value_at` gives the values that vary. A comparison of text with a
  // number is false.
  bool holds(const std::function<const Json&(std::size_t)>& value_at) const;

 private:
  enum class Kind { constant, varies, binary };
  struct Step {  // a step of the postfix form
    Kind kind = Kind::constant;
    ConstraintValue constant;
    std::size_t position = 0;
    std::string_view symbol;
  };
  class Parser;

  std::vector<Step> steps_;
};

}  // namespace trainyard
