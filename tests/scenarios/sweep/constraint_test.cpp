#include "scenarios/sweep/constraint.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

// `a` is 8 and varies, `b` is 3, `bandwidth` is "400 Gbit/s", `stack` is "fsdp", `on` is true.
Expected<KeyMeaning> meaning(const std::string& key) {
  if (key == "a") return KeyMeaning(std::size_t{0});
  if (key == "b") return KeyMeaning(constraint_value_of(3));
  if (key == "bandwidth") return KeyMeaning(constraint_value_of("400 Gbit/s"));
  if (key == "stack") return KeyMeaning(constraint_value_of("fsdp"));
  if (key == "on") return KeyMeaning(constraint_value_of(true));
  return failure("", "unknown " + key);
}

bool holds(const std::string& text) {
  const Json a = 8;
  const auto constraint = Constraint::parse(text, meaning);
  EXPECT_TRUE(constraint.has_value()) << text << ": " << constraint.error().message;
  return constraint && constraint->holds([&a](std::size_t) -> const Json& { return a; });
}

TEST(Constraint, HoldsAsArithmeticSays) {
  for (const char* truth :
       {"a == 8", "a * b <= 24", "a + b * 2 == 14", "(a + b) * 2 == 22", "a % b == 2",
        "a - 1 - 1 == 6", "a / b > 2.6", "a / b < 2.7", "a != b", "-1 < 0", "0.1 + 0.2 == 0.3"}) {
    EXPECT_TRUE(holds(truth)) << truth;
  }
  for (const char* lie : {"a == 7", "a * b < 24", "a > 8", "a < b", "a % 4", "b != 3"}) {
    EXPECT_FALSE(holds(lie)) << lie;
  }
}

TEST(Constraint, JoinsConditionsAndBeforeOr) {
  EXPECT_TRUE(holds("a == 8 or a == 1 and b == 1"));
  EXPECT_FALSE(holds("(a == 8 or a == 1) and b == 1"));
  EXPECT_TRUE(holds("a == 8 and b == 3"));
}

// 400 Gbit/s is 50 GB/s.
TEST(Constraint, ComparesQuantitiesInBaseUnitsAndTextByName) {
  EXPECT_TRUE(holds("bandwidth == '50 GB/s'"));
  EXPECT_TRUE(holds("bandwidth > \"49 GB/s\""));
  EXPECT_FALSE(holds("bandwidth < '50 GB/s'"));
  EXPECT_TRUE(holds("stack == 'fsdp'"));
  EXPECT_TRUE(holds("stack != 'megatron-core'"));
  EXPECT_FALSE(holds("stack < 3"));
  EXPECT_FALSE(holds("stack + 1 > 0"));
  EXPECT_TRUE(holds("on == true"));
}

TEST(Constraint, SaysWhereItCannotBeRead) {
  EXPECT_EQ(Constraint::parse("a <=", meaning).error().message,
            "found the end at character 5; allowed: a key, a number or text in quotes");
  EXPECT_EQ(Constraint::parse("a b", meaning).error().message,
            "found \"b\" at character 3; allowed: an operator");
  EXPECT_EQ(Constraint::parse("c > 1", meaning).error().message, "unknown c");
  EXPECT_FALSE(Constraint::parse("(a", meaning).has_value());
  EXPECT_FALSE(Constraint::parse("'a", meaning).has_value());
  EXPECT_FALSE(Constraint::parse(std::string(100'000, '('), meaning).has_value());
}

}  // namespace
}  // namespace trainyard
