#include "scenarios/sweep/swept_keys.h"

namespace trainyard {
SweptKeys::SweptKeys(const Sweep& sweep) : sweep_(sweep), known_(sweep.columns.size()) {
  keys_.reserve(sweep.columns.size());
  for (const SweepColumn& column : sweep.columns) {
    keys_.push_back({.name = column.name, .values = {}, .is_listed = !sweep.csv});
  }
  const bool one_at_a_time = sweep.document.combine == Combination::one_at_a_time;
  for (const SweepAxis& axis : sweep.axes) {
    for (std::size_t within = 0; within < axis.columns.size(); ++within) {
      const std::size_t key = axis.columns[within];
      keys_[key].is_listed = !axis.range;
      if (one_at_a_time) place_of(key, {});
      for (const auto& row : axis.rows) place_of(key, row[within]);
    }
  }
}

std::vector<int> SweptKeys::places(std::int64_t point) {
  values_at(sweep_, point, values_);
  std::vector<int> places;
  places.reserve(values_.size());
  for (std::size_t key = 0; key < values_.size(); ++key) {
    places.push_back(place_of(key, values_[key]));
  }
  return places;
}

// If the point does not change the key, its value is the scenario's.
int SweptKeys::place_of(std::size_t key, const SweepValue& value) {
  const bool own = value.text.empty();
  const Json* json = own ? find(sweep_.columns[key], sweep_.base) : &value.value;
  const std::string text = own && json != nullptr ? json_line(*json) : value.text;
  auto& values = keys_[key].values;
  const auto [place, is_new] = known_[key].try_emplace(text, static_cast<int>(values.size()));
  if (is_new) {
    const bool is_text = json != nullptr && json->is_string();
    values.push_back(is_text ? json->get<std::string>() : text);
  }
  return place->second;
}

}  // namespace trainyard
