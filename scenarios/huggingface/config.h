// The keys of a Hugging Face config.json, with the names that families give them. The first error
// is remembered instead of stopping at it.
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

// Not false, 0 or below, null or empty.
bool says_something(const Json& value);

class HuggingFaceConfig {
 public:
  using Keys = std::initializer_list<std::string_view>;

  // `json` outlives the config.
  HuggingFaceConfig(const Json& json, Place place) : json_(json), place_(std::move(place)) {}

  // The value of the first of the keys that is there and not null; else nullptr.
  const Json* find(Keys keys);
  bool has(std::string_view key) { return find({key}) != nullptr; }
  // The keys that say something and that nobody has asked for yet, in the config's order.
  std::vector<std::string> unread() const;
  // Counts as asked for: what it says, another key has said.
  void pass_over(Keys keys) { asked_.insert(keys.begin(), keys.end()); }
  // One of the keys is there as null: the config says that there is none.
  bool says_none(Keys keys) const;
  // One of the keys is there as false.
  bool says_false(Keys keys) const;

  // A whole number from 0 to `most`. Of the keys that some configs give layer by layer, a list of
  // equal numbers stands for one of them.
  std::int64_t count(Keys keys, std::int64_t fallback, double most = 1e8);
  int small_count(Keys keys, int fallback, double most = 1e6);
  // From 1; an error where there is none of the keys.
  int required(Keys keys, double most = 1e6);
  // null is false, as the code of a network takes it; the fallback is of keys that are not there.
  bool flag(Keys keys, bool fallback);
  std::string text(std::string_view key);
  // nullptr where the key is not there.
  const Json* list(std::string_view key);
  // A list with an entry for each of `layers` layers, multi-token-prediction layers aside.
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
  // The number at the first of the keys; nullopt: there is none, or an error is remembered.
  std::optional<std::int64_t> whole_number(Keys keys, double least, double most);
  // The one value that a list of equal values stands for; remembers an error where they differ.
  const Json* one_of(const Json& list);

  const Json& json_;
  Place place_;
  std::string_view last_key_;
  std::set<std::string, std::less<>> asked_;
  std::vector<std::string> assumptions_;
  std::optional<Error> error_;
};

}  // namespace trainyard
