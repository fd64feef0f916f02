// The keys of a Hugging Face config.json, under the different names that families give them.
// Getters never stop at an error: the first one is remembered, and error() returns it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "scenarios/fields/place.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

// Whether a value states something: it is not false, 0 or below, null or empty.
bool says_something(const Json& value);

class HuggingFaceConfig {
 public:
  using Keys = std::initializer_list<std::string_view>;

  // Requires: `json` outlives the config.
  HuggingFaceConfig(const Json& json, Place place) : json_(json), place_(std::move(place)) {}

  // The value of the first of the keys that is present and not null; else nullptr.
  const Json* find(Keys keys);
  bool has(std::string_view key) { return find({key}) != nullptr; }
  // The keys that state something and that nobody has asked for yet, in the config's order.
  std::vector<std::string> unread() const;
  // Marks keys as asked for, because another key has said the same.
  void pass_over(Keys keys) { asked_.insert(keys.begin(), keys.end()); }
  // Whether one of the keys is present as null, by which a config says "none".
  bool says_none(Keys keys) const;
  // Whether one of the keys is present as false.
  bool says_false(Keys keys) const;

  // A whole number from 0 to `most`. For the keys that some configs give layer by layer, a list of
  // equal numbers counts as that number.
  std::int64_t count(Keys keys, std::int64_t fallback, double most = 1e8);
  int small_count(Keys keys, int fallback, double most = 1e6);
  // A whole number from 1; an error if none of the keys is present.
  int required(Keys keys, double most = 1e6);
  // A flag; null is false, as in the networks' code. `fallback`: if none of the keys is present.
  bool flag(Keys keys, bool fallback);
  std::string text(std::string_view key);
  // A list; nullptr: the key is absent.
  const Json* list(std::string_view key);
  // A list with one entry for each of `layers` layers, without multi-token-prediction layers.
  const Json* layer_list(std::string_view key, int layers);

  void assume(std::string what) { assumptions_.push_back(std::move(what)); }
  std::vector<std::string>& assumptions() { return assumptions_; }
  void refuse(const Place& place, std::string message);
  const std::optional<Error>& error() const { return error_; }
  const Place& place() const { return place_; }

 private:
  void remember(Error error) {
    if (!error_) error_ = std::move(error);
  }
  // The number at the first key that is present; nullopt: none is, or an error is remembered.
  std::optional<std::int64_t> whole_number(Keys keys, double least, double most);
  // The value of a list whose entries are equal; remembers an error if they differ.
  const Json* one_of(const Json& list);

  const Json& json_;
  Place place_;
  std::string_view last_key_;
  std::set<std::string, std::less<>> asked_;
  std::vector<std::string> assumptions_;
  std::optional<Error> error_;
};

}  // namespace trainyard
