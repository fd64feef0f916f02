#include "scenarios/interchange/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>

namespace trainyard {
namespace {

std::string word_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool is_leaf(const Json& value) {
  if (!value.is_array()) return !value.is_object();
  return std::ranges::none_of(value, [](const Json& element) { return element.is_structured(); });
}

std::vector<std::string> words_of_leaf(const Json& value) {
  std::vector<std::string> words;
  if (!value.is_array()) return {word_of(value)};
  for (const Json& element : value) words.push_back(word_of(element));
  return words;
}

template <typename Number>
std::optional<Number> parsed(std::string_view text) {
  Number value{};
  const auto end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end ? std::optional(value) : std::nullopt;
}

// The name of a leaf; without a separator, its last key.
std::string joined_name(const std::string& name, std::string_view separator,
                        const std::string& key) {
  return separator.empty() || name.empty() ? key : fmt::format("{}{}{}", name, separator, key);
}

}  // namespace

// Recursion is safe, because the reader limits nesting.
void Options::set_tree(const Json& tree, std::string_view separator) {
  const std::function<void(const Json&, const std::string&, const std::string&)> visit =
      [&](const Json& value, const std::string& name, const std::string& pointer) {
        if (value.is_null()) return;
        if (is_leaf(value)) {
          set(name, {words_of_leaf(value), fmt::format("{}: {}", file_, pointer)});
        } else if (value.is_array()) {
          for (std::size_t i = 0; i < value.size(); ++i) {
            visit(value[i], name, fmt::format("{}/{}", pointer, i));
          }
        } else {
          for (const auto& [key, member] : value.items()) {
            visit(member, joined_name(name, separator, key), pointer + pointer_step(key));
          }
        }
      };
  visit(tree, "", "");
}

void Options::rename(std::string_view earlier, std::string_view name) {
  const auto found = options_.find(earlier);
  if (found == options_.end() || options_.contains(name)) return;
  set(std::string(name), std::move(found->second));
  options_.erase(found);
}

Option* Options::find(std::string_view name) {
  const auto found = options_.find(name);
  if (found == options_.end()) return nullptr;
  found->second.read = true;
  return &found->second;
}

bool Options::has(std::string_view name) { return find(name) != nullptr; }

std::optional<bool> Options::said(std::string_view name) {
  const Option* option = find(name);
  if (option == nullptr) return std::nullopt;
  if (option->words.empty()) return true;
  const std::string& word = option->words.front();
  if (word == "true" || word == "True" || word == "1") return true;
  if (word == "false" || word == "False" || word == "0") return false;
  if (flags_ == Flags::without_value) return true;
  refuse(name, "true or false");
  return std::nullopt;
}

bool Options::flag(std::string_view name) { return said(name).value_or(false); }

std::optional<std::int64_t> Options::count(std::string_view name, std::int64_t least,
                                           std::int64_t most) {
  const Option* option = find(name);
  if (option == nullptr) return std::nullopt;
  const std::string_view word = option->words.empty() ? std::string_view() : option->words.front();
  auto value = parsed<std::int64_t>(word);
  if (!value) {  // 1e6 and 8.0 are whole numbers too
    const auto real = parsed<double>(word);
    if (real && *real >= -1e15 && *real <= 1e15 &&
        static_cast<double>(static_cast<std::int64_t>(*real)) == *real) {
      value = static_cast<std::int64_t>(*real);
    }
  }
  if (value && *value >= least && *value <= most) return value;
  refuse(name, fmt::format("a whole number from {} to {}", least, most));
  return std::nullopt;
}

int Options::degree(std::string_view name, int fallback) {
  return static_cast<int>(count(name, 1, 1'000'000).value_or(fallback));
}

std::optional<double> Options::number(std::string_view name) {
  const Option* option = find(name);
  if (option == nullptr) return std::nullopt;
  const auto value = option->words.empty() ? std::nullopt : parsed<double>(option->words.front());
  if (!value || !(*value >= -1e300 && *value <= 1e300)) refuse(name, "a number");
  return value;
}

std::string Options::text(std::string_view name) {
  const Option* option = find(name);
  return option == nullptr || option->words.empty() ? "" : option->words.front();
}

std::vector<std::string> Options::words(std::string_view name) {
  const Option* option = find(name);
  return option == nullptr ? std::vector<std::string>{} : option->words;
}

std::string Options::choice(std::string_view name, std::span<const std::string_view> allowed,
                            std::string_view fallback) {
  if (!has(name)) return std::string(fallback);
  std::string word = text(name);
  if (std::ranges::find(allowed, word) != allowed.end()) return word;
  refuse(name, fmt::format("{}", fmt::join(allowed, ", ")));
  return std::string(fallback);
}

void Options::refuse(std::string_view name, std::string_view allowed) {
  const Option* option = find(name);
  if (option == nullptr) {
    return fail({file_, fmt::format("found no {}; allowed: {}", name, allowed)});
  }
  const std::string all = fmt::format("{}", fmt::join(option->words, " "));
  const std::string found = all.empty() ? "" : " " + shown(std::string_view(all));
  fail({option->where, fmt::format("found {}{}; allowed: {}", name, found, allowed)});
}

void Options::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

bool Options::is_off(std::string_view name) const {
  constexpr auto kNothing = std::to_array<std::string_view>(
      {"false", "False", "0", "0.0", "none", "None", "null", "no", ""});
  const auto found = options_.find(name);
  return found != options_.end() && found->second.words.size() == 1 &&
         std::ranges::find(kNothing, found->second.words.front()) != kNothing.end();
}

std::vector<std::string> Options::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, option] : options_) {
    if (!option.read) names.push_back(shown(std::string_view(name)));
  }
  for (std::string& name : names) name = name.substr(1, name.size() - 2);
  return names;
}

}  // namespace trainyard
