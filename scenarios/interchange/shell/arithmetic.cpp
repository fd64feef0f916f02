#include "scenarios/interchange/shell/arithmetic.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace trainyard {
namespace {

using Number = std::optional<std::int64_t>;

constexpr int kDeepestExpression = 64;

struct BinaryOperator {
  std::string_view sign;
  int rank;  // a higher one binds first
};
// An operator stands before those that are a beginning of it.
constexpr auto kBinaryOperators = std::to_array<BinaryOperator>({{"||", 1},
                                                                 {"&&", 2},
                                                                 {"==", 3},
                                                                 {"!=", 3},
                                                                 {"<=", 4},
                                                                 {">=", 4},
                                                                 {"<", 4},
                                                                 {">", 4},
                                                                 {"+", 5},
                                                                 {"-", 5},
                                                                 {"*", 6},
                                                                 {"/", 6},
                                                                 {"%", 6}});

Number calculated(char sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const bool divides = sign == '/' || sign == '%';
  if (divides && (b == 0 || b == -1)) return sign == '%' && b == -1 ? Number(0) : std::nullopt;
  if (sign == '/') return a / b;
  if (sign == '%') return a % b;
  const bool too_large = sign == '+'   ? __builtin_add_overflow(a, b, &result)
                         : sign == '-' ? __builtin_sub_overflow(a, b, &result)
                                       : __builtin_mul_overflow(a, b, &result);
  return too_large ? std::nullopt : Number(result);
}

struct TruthOperator {
  std::string_view sign;
  bool (*holds)(std::int64_t a, std::int64_t b);
};
constexpr auto kTruthOperators = std::to_array<TruthOperator>(
    {{"||", [](std::int64_t a, std::int64_t b) { return a != 0 || b != 0; }},
     {"&&", [](std::int64_t a, std::int64_t b) { return a != 0 && b != 0; }},
     {"==", [](std::int64_t a, std::int64_t b) { return a == b; }},
     {"!=", [](std::int64_t a, std::int64_t b) { return a != b; }},
     {"<=", [](std::int64_t a, std::int64_t b) { return a <= b; }},
     {">=", [](std::int64_t a, std::int64_t b) { return a >= b; }},
     {"<", [](std::int64_t a, std::int64_t b) { return a < b; }},
     {">", [](std::int64_t a, std::int64_t b) { return a > b; }}});

Number applied(std::string_view sign, std::int64_t a, std::int64_t b) {
  const auto* const truth = std::ranges::find(kTruthOperators, sign, &TruthOperator::sign);
  if (truth != kTruthOperators.end()) return truth->holds(a, b) ? 1 : 0;
  return calculated(sign.front(), a, b);
}

class Expression {
 public:
  Expression(std::string_view text, const ShellLookup& lookup) : text_(text), lookup_(lookup) {}

  Number whole() {
    const Number value = choice();
    skip_blanks();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool take(std::string_view sign) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }

  // a ? b : c
  Number choice() {
    if (++depth_ > kDeepestExpression) return std::nullopt;
    const Number condition = binary(1);
    Number value = condition;
    if (condition && take("?")) {
      const Number yes = choice();
      const bool complete = take(":");
      const Number no = choice();
      value = !complete ? std::nullopt : *condition != 0 ? yes : no;
    }
    --depth_;
    return value;
  }

  const BinaryOperator* take_operator(int rank) {
    skip_blanks();
    const auto* const found = std::ranges::find_if(
        kBinaryOperators,
        [&](const BinaryOperator& known) { return text_.substr(at_).starts_with(known.sign); });
    if (found == kBinaryOperators.end() || found->rank < rank) return nullptr;
    at_ += found->sign.size();
    return found;
  }

  Number binary(int rank) {
    if (++depth_ > kDeepestExpression) return std::nullopt;
    Number value = operand();
    while (value) {
      const BinaryOperator* const sign = take_operator(rank);
      if (sign == nullptr) break;
      const Number other = binary(sign->rank + 1);
      value = other ? applied(sign->sign, *value, *other) : std::nullopt;
    }
    --depth_;
    return value;
  }

  Number operand() {
    if (++depth_ > kDeepestExpression) return std::nullopt;
    Number value = signed_operand();
    --depth_;
    return value;
  }

  Number signed_operand() {
    if (take("!")) {
      const Number value = operand();
      return value ? Number(*value == 0 ? 1 : 0) : value;
    }
    if (take("-")) {
      const Number value = operand();
      return value ? calculated('-', 0, *value) : value;
    }
    if (take("+")) return operand();
    if (!take("(")) return literal();
    const Number value = choice();
    return take(")") ? value : std::nullopt;
  }

  // A number, or the number that a variable holds.
  Number literal() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_of_name(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return std::nullopt;
    if (word.front() >= '0' && word.front() <= '9') return number(word);
    const auto known = lookup_(word);
    return known ? number(*known) : std::nullopt;
  }

  static Number number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool octal = text.size() > 1 && text.front() == '0';
    if (error != std::errc() || end != text.data() + text.size() || octal) return std::nullopt;
    return value;
  }

  static bool is_of_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  std::string_view text_;
  const ShellLookup& lookup_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> shell_number(std::string_view expression, const ShellLookup& lookup) {
  return Expression(expression, lookup).whole();
}

}  // namespace trainyard
