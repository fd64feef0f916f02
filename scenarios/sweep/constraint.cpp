#include "scenarios/sweep/constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "scenarios/json/quantity.h"

namespace trainyard {
namespace {

ConstraintValue value_of_text(const std::string& text) {
  const auto quantity = quantity_of_some_kind(text);
  return quantity ? ConstraintValue(*quantity) : ConstraintValue(text);
}

// By precedence, loosest first; a symbol stands before those that are a beginning of it.
constexpr std::array<std::string_view, 1> kOr = {"or"};
constexpr std::array<std::string_view, 1> kAnd = {"and"};
constexpr std::array<std::string_view, 6> kCompare = {"<=", ">=", "==", "!=", "<", ">"};
constexpr std::array<std::string_view, 2> kSum = {"+", "-"};
constexpr std::array<std::string_view, 3> kProduct = {"*", "/", "%"};
constexpr std::array<std::span<const std::string_view>, 5> kRanks = {kOr, kAnd, kCompare, kSum,
                                                                     kProduct};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

double arithmetic(std::string_view symbol, double a, double b) {
  switch (symbol.front()) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return a / b;
    case '%':
      return std::fmod(a, b);
    default:
      return symbol == "and" ? (a != 0 && b != 0 ? 1 : 0) : (a != 0 || b != 0 ? 1 : 0);
  }
}

// Computed numbers that should be equal may differ in their last digits.
bool alike(double a, double b) {
  return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
}

bool compared(std::string_view symbol, double a, double b) {
  if (symbol == "==") return alike(a, b);
  if (symbol == "!=") return !alike(a, b);
  const bool or_equal = symbol.size() == 2 && alike(a, b);
  return or_equal || (symbol.front() == '<' ? a < b : a > b);
}

double combined(std::string_view symbol, const ConstraintValue& a, const ConstraintValue& b) {
  const bool compares = std::ranges::find(kCompare, symbol) != kCompare.end();
  const auto* x = std::get_if<double>(&a);
  const auto* y = std::get_if<double>(&b);
  if (x != nullptr && y != nullptr) {
    return compares ? (compared(symbol, *x, *y) ? 1 : 0) : arithmetic(symbol, *x, *y);
  }
  if (symbol == "==") return a == b ? 1 : 0;
  if (symbol == "!=") return a == b ? 0 : 1;
  return compares ? 0 : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

ConstraintValue constraint_value_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (value.is_string()) return value_of_text(value.get_ref<const std::string&>());
  return json_line(value);
}

class Constraint::Parser {
 public:
  Parser(std::string_view text, const std::function<Expected<KeyMeaning>(const std::string&)>& key,
         std::vector<Step>& steps)
      : text_(text), key_(key), steps_(steps) {}

  Expected<void> parse() {
    if (auto done = chain(0); !done) return done;
    skip_blanks();
    return at_ == text_.size() ? Expected<void>{} : refuse("an operator");
  }

 private:
  // Operators of the same precedence associate to the left.
  Expected<void> chain(std::size_t rank) {
    if (rank == kRanks.size()) return primary();
    if (auto done = chain(rank + 1); !done) return done;
    while (const auto symbol = take(kRanks[rank])) {
      if (auto done = chain(rank + 1); !done) return done;
      steps_.push_back({.kind = Kind::binary, .symbol = *symbol});
    }
    return {};
  }

  Expected<void> primary() {
    skip_blanks();
    if (at_ == text_.size()) return refuse("a key, a number or text in quotes");
    const char c = text_[at_];
    if (c == '(') return parenthesis();
    if (c == '"' || c == '\'') return quoted(c);
    if ((c >= '0' && c <= '9') || c == '-') return number();
    if (is_word(c)) return key();
    return refuse("a key, a number or text in quotes");
  }

  Expected<void> parenthesis() {
    constexpr int kMostParentheses = 64;
    if (++depth_ > kMostParentheses) return refuse("at most 64 parentheses inside each other");
    ++at_;
    if (auto done = chain(0); !done) return done;
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != ')') return refuse("\")\"");
    ++at_;
    --depth_;
    return {};
  }

  Expected<void> quoted(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return refuse("text that ends with its quote");
    push(value_of_text(std::string(text_.substr(at_ + 1, end - at_ - 1))));
    at_ = end + 1;
    return {};
  }

  Expected<void> number() {
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return refuse("a number");
    at_ += static_cast<std::size_t>(end - begin);
    push(value);
    return {};
  }

  Expected<void> key() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (name == "true" || name == "false") {
      push(name == "true" ? 1.0 : 0.0);
      return {};
    }
    const auto meaning = key_(name);
    if (!meaning) return tl::unexpected(meaning.error());
    if (const auto* position = std::get_if<std::size_t>(&*meaning)) {
      steps_.push_back({.kind = Kind::varies, .position = *position});
    } else {
      push(std::get<ConstraintValue>(*meaning));
    }
    return {};
  }

  std::optional<std::string_view> take(std::span<const std::string_view> symbols) {
    skip_blanks();
    for (const std::string_view symbol : symbols) {
      const bool here = text_.substr(at_).starts_with(symbol);
      const std::size_t end = at_ + symbol.size();
      const bool word_goes_on =
          is_word(symbol.front()) && end < text_.size() && is_word(text_[end]);
      if (!here || word_goes_on) continue;
      at_ = end;
      return symbol;
    }
    return std::nullopt;
  }

  void push(ConstraintValue constant) { steps_.push_back({.constant = std::move(constant)}); }
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(' ', at_), text_.size()); }
  tl::unexpected<Error> refuse(std::string_view allowed) const {
    const std::string_view rest = text_.substr(at_, 20);
    return failure("", fmt::format("found {} at character {}; allowed: {}",
                                   rest.empty() ? "the end" : shown(rest), at_ + 1, allowed));
  }

  std::string_view text_;
  const std::function<Expected<KeyMeaning>(const std::string&)>& key_;
  std::vector<Step>& steps_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

Expected<Constraint> Constraint::parse(
    std::string_view text, const std::function<Expected<KeyMeaning>(const std::string&)>& key) {
  Constraint constraint;
  auto done = Parser(text, key, constraint.steps_).parse();
  return done ? Expected<Constraint>(std::move(constraint)) : tl::unexpected(done.error());
}

bool Constraint::holds(const std::function<const Json&(std::size_t)>& value_at) const {
  std::vector<ConstraintValue> stack;
  stack.reserve(steps_.size());
  for (const Step& step : steps_) {
    if (step.kind == Kind::constant) {
      stack.push_back(step.constant);
    } else if (step.kind == Kind::varies) {
      stack.push_back(constraint_value_of(value_at(step.position)));
    } else {
      const ConstraintValue right = std::move(stack.back());
      stack.pop_back();
      stack.back() = combined(step.symbol, stack.back(), right);
    }
  }
  const auto* truth = std::get_if<double>(&stack.back());
  return truth != nullptr && *truth != 0 && !std::isnan(*truth);
}

}  // namespace trainyard
