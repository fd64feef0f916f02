#include "scenarios/huggingface/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/fields/shape.h"

namespace trainyard {
namespace {

// Keys whose values some configs (Hunyuan's, ERNIE's) give layer by layer.
constexpr auto kByLayer = std::to_array<std::string_view>(
    {"num_experts", "moe_num_experts", "moe_topk", "num_shared_expert", "moe_intermediate_size",
     "intermediate_size", "num_key_value_heads"});

}  // namespace

bool says_something(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value > 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();
}

const Json* HuggingFaceConfig::find(Keys keys) {
  pass_over(keys);
  for (const std::string_view key : keys) {
    const auto member = json_.find(key);
    if (member == json_.end() || member->is_null()) continue;
    last_key_ = key;
    return &*member;
  }
  return nullptr;
}

std::vector<std::string> HuggingFaceConfig::unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json_.items()) {
    if (!asked_.contains(key) && says_something(value)) keys.push_back(key);
  }
  return keys;
}

bool HuggingFaceConfig::says_none(Keys keys) const {
  return std::ranges::any_of(keys, [this](std::string_view key) {
    const auto member = json_.find(key);
    return member != json_.end() && member->is_null();
  });
}

bool HuggingFaceConfig::says_false(Keys keys) const {
  return std::ranges::any_of(keys, [this](std::string_view key) {
    const auto member = json_.find(key);
    return member != json_.end() && *member == false;
  });
}

void HuggingFaceConfig::refuse(const Place& place, std::string message) {
  remember(place.error(std::move(message)).value());
}

const Json* HuggingFaceConfig::one_of(const Json& list) {
  if (list.empty()) {
    refuse(place_ / last_key_, "found an empty list; allowed: a whole number");
    return nullptr;
  }
  const bool equal =
      std::ranges::all_of(list, [&](const Json& entry) { return entry == list.front(); });
  if (equal) return &list.front();
  refuse(place_ / last_key_,
         "found a list of unlike values; allowed: a whole number, or the same one for each layer");
  return nullptr;
}

std::optional<std::int64_t> HuggingFaceConfig::whole_number(Keys keys, double least, double most) {
  const Json* value = find(keys);
  const bool by_layer = std::ranges::find(kByLayer, last_key_) != kByLayer.end();
  if (value != nullptr && value->is_array() && by_layer) value = one_of(*value);
  if (value == nullptr) return std::nullopt;
  const auto fits = check({CountShape{.least = least, .most = most}}, *value, place_ / last_key_);
  if (fits) return static_cast<std::int64_t>(value->get<double>());
  remember(fits.error());
  return std::nullopt;
}

std::int64_t HuggingFaceConfig::count(Keys keys, std::int64_t fallback, double most) {
  return whole_number(keys, 0, most).value_or(fallback);
}

int HuggingFaceConfig::small_count(Keys keys, int fallback, double most) {
  return static_cast<int>(count(keys, fallback, most));
}

int HuggingFaceConfig::required(Keys keys, double most) {
  if (find(keys) == nullptr) {
    refuse(place_, fmt::format("found no \"{}\"; allowed: the config of a decoder that says it",
                               *keys.begin()));
  }
  return static_cast<int>(whole_number(keys, 1, most).value_or(1));
}

bool HuggingFaceConfig::flag(Keys keys, bool fallback) {
  const Json* value = find(keys);
  if (value == nullptr) return fallback && !says_none(keys);
  const auto fits = check({FlagShape{}}, *value, place_ / last_key_);
  if (!fits) remember(fits.error());
  return fits ? value->get<bool>() : fallback;
}

std::string HuggingFaceConfig::text(std::string_view key) {
  const Json* value = find({key});
  if (value == nullptr) return "";
  const auto fits = check({TextShape{}}, *value, place_ / key);
  if (!fits) remember(fits.error());
  return fits ? value->get<std::string>() : "";
}

const Json* HuggingFaceConfig::list(std::string_view key) {
  const Json* value = find({key});
  if (value == nullptr || value->is_array()) return value;
  refuse(place_ / key, fmt::format("found {}; allowed: a list", shown(*value)));
  return nullptr;
}

const Json* HuggingFaceConfig::layer_list(std::string_view key, int layers) {
  const Json* entries = list(key);
  if (entries == nullptr) return nullptr;
  const int most = layers + small_count({"num_nextn_predict_layers", "num_mtp_layers"}, 0);
  const auto found = static_cast<std::int64_t>(entries->size());
  if (found >= layers && found <= most) return entries;
  refuse(place_ / key, fmt::format("found {} {}; allowed: one for each of the {} layers", found,
                                   found == 1 ? "entry" : "entries", layers));
  return nullptr;
}

}  // namespace trainyard
