#include "scenarios/interchange/shell/condition.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace trainyard {
namespace {

constexpr int kDeepestCondition = 64;

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && read == end && !text.empty() ? std::optional(number)
                                                              : std::nullopt;
}

std::optional<bool> compared(std::int64_t a, std::string_view sign, std::int64_t b) {
  if (sign == "-eq") return a == b;
  if (sign == "-ne") return a != b;
  if (sign == "-lt") return a < b;
  if (sign == "-le") return a <= b;
  if (sign == "-gt") return a > b;
  if (sign == "-ge") return a >= b;
  return std::nullopt;
}

class Condition {
 public:
  explicit Condition(std::span<const ShellToken> tokens) : tokens_(tokens) {}

  ShellCondition whole() {
    const bool holds = any();
    return {holds, decided_ && at_ >= tokens_.size()};
  }

 private:
  bool at_end() const { return at_ >= tokens_.size(); }
  bool take_sign(std::string_view sign) {
    if (at_end() || !tokens_[at_].is_sign(sign)) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (at_end() || !tokens_[at_].is_word(word)) return false;
    ++at_;
    return true;
  }

  bool any() {
    bool holds = all();
    while (take_sign("||") || (bracket_ != nullptr && take_word("-o"))) {
      const bool other = all();
      holds = holds || other;
    }
    return holds;
  }

  bool all() {
    bool holds = one();
    while (take_sign("&&") || (bracket_ != nullptr && take_word("-a"))) {
      const bool other = one();
      holds = holds && other;
    }
    return holds;
  }

  bool one() {
    if (++depth_ > kDeepestCondition) return unknown();
    const bool holds = take_word("!") ? !one() : primary();
    --depth_;
    return holds;
  }

  bool primary() {
    if (take_sign("(")) return closed(any(), take_sign(")"));
    if (bracket_ != nullptr) return comparison();
    if (take_word("[")) return bracketed("]");
    if (take_word("[[")) return bracketed("]]");
    if (take_word("test")) return comparison();
    if (take_word("true")) return true;
    if (take_word("false")) return false;
    if (!at_end() && tokens_[at_].kind == ShellToken::Kind::arithmetic) {
      const auto value = whole_number(tokens_[at_++].text);
      return value ? *value != 0 : unknown();
    }
    while (!at_end() && !ends_command()) ++at_;
    return unknown();
  }

  bool closed(bool holds, bool complete) { return complete ? holds : unknown(); }

  bool bracketed(const char* end) {
    bracket_ = end;
    const bool holds = any();
    bracket_ = nullptr;
    return closed(holds, take_word(end));
  }

  bool ends_command() const {
    const ShellToken& token = tokens_[at_];
    return token.is_sign("&&") || token.is_sign("||") || token.is_sign(")");
  }

  bool ends_comparison() const {
    const ShellToken& token = tokens_[at_];
    return ends_command() || (bracket_ != nullptr && (token.is_word(bracket_) ||
                                                      token.is_word("-a") || token.is_word("-o")));
  }

  bool comparison() {
    std::vector<std::string> words;
    for (; !at_end() && !ends_comparison(); ++at_) words.push_back(tokens_[at_].text);
    if (words.size() == 1) return !words.front().empty();
    if (words.size() == 2 && words.front() == "-z") return words[1].empty();
    if (words.size() == 2 && words.front() == "-n") return !words[1].empty();
    if (words.size() != 3) return unknown();
    if (words[1] == "=" || words[1] == "==") return matches(words[0], words[2]);
    if (words[1] == "!=") return !matches(words[0], words[2]);
    const auto a = whole_number(words[0]);
    const auto b = whole_number(words[2]);
    const auto holds = a && b ? compared(*a, words[1], *b) : std::nullopt;
    return holds ? *holds : unknown();
  }

  static bool matches(const std::string& text, const std::string& pattern) {
    return text == pattern || ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
  }

  bool unknown() {
    decided_ = false;
    return false;
  }

  std::span<const ShellToken> tokens_;
  std::size_t at_ = 0;
  const char* bracket_ = nullptr;  // what closes the open bracket; null: none is open
  int depth_ = 0;
  bool decided_ = true;
};

}  // namespace

ShellCondition shell_condition(std::span<const ShellToken> tokens) {
  return Condition(tokens).whole();
}

}  // namespace trainyard
