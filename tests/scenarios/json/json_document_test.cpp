#include "scenarios/json/json_document.h"

#include <gtest/gtest.h>

#include <string>

namespace trainyard {
namespace {

std::string error_of(std::string_view text) {
  const auto value = parse_json(text);
  return value ? "" : value.error().where + ": " + value.error().message;
}

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + "0" + std::string(depth, ']');
}

TEST(JsonDocument, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse_json(R"({"b": 1, "a": [2, {"d": 3, "c": 4}]})")->dump(),
            R"({"b":1,"a":[2,{"d":3,"c":4}]})");
}

TEST(JsonDocument, SaysWhereAKeyStandsTwice) {
  EXPECT_EQ(error_of(R"({"a": [{}, {"b": 1, "b": 1}]})"),
            "/a/1/b: found this key twice; allowed: once");
  EXPECT_EQ(error_of(R"({"a": {"b": 1}, "c": {"b": 1}})"), "");
}

TEST(JsonDocument, IsNestedToTheLimitAndNoFurther) {
  EXPECT_TRUE(parse_json(nested(kDeepestNesting)).has_value());
  EXPECT_FALSE(parse_json(nested(kDeepestNesting + 1)).has_value());
  EXPECT_FALSE(parse_json(nested(100'000)).has_value());
  EXPECT_FALSE(parse_json(std::string(10'000'000, '[')).has_value());
}

TEST(JsonDocument, SaysLineAndColumnOfASyntaxError) {
  EXPECT_TRUE(error_of("{\n  \"a\": 1,\n  x\n}").starts_with("line 3, column 3: found \"x\\n}\""));
}

// A quadratic look-up of keys would take hours for this document.
TEST(JsonDocument, TakesTimeInProportionToItsKeys) {
  std::string text = "{\"k\": 0";
  for (int i = 0; i < 300'000; ++i) text += ",\"k" + std::to_string(i) + "\": 0";
  EXPECT_EQ(parse_json(text + "}")->size(), 300'001U);
}

TEST(JsonDocument, ShowsAtMostEightyCharactersOfWhatWasFound) {
  const std::string shown_text = shown(std::string_view("é" + std::string(500, 'x')));
  EXPECT_EQ(shown_text, "\"é" + std::string(77, 'x') + "…");
  EXPECT_EQ(shown(Json("a\nb\x01")), R"("a\nb\u0001")");
  EXPECT_EQ(shown(Json{{"a", 1}, {"b", 2}}), "an object of 2 keys");
}

}  // namespace
}  // namespace trainyard
