#include "scenarios/editing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/form.h"
#include "scenarios/json/file.h"
#include "scenarios/scenario.h"
#include "scenarios/scenario_text.h"
#include "tests/scenarios/test_folder.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kText = R"({
  "trainyard": "scenario/1",
  "model": "llama-3.1-8b",
  "cluster": { "node": "dgx-h100-80gb", "nodes": 2 },
  "training": {
    "global_batch": 64,
    "sequence_length": 8192
  }
}
)";

TEST(WithValue, LeavesTheRestOfTheTextAsItIs) {
  const auto edited = with_value(kText, "/cluster/nodes", "4");
  EXPECT_THAT(*edited, HasSubstr("  \"cluster\": { \"node\": \"dgx-h100-80gb\", \"nodes\": 4 },"));
  EXPECT_EQ(with_value(*edited, "/cluster/nodes", "2"), kText);
}

TEST(WithValue, AddsAKeyInTheLayoutOfItsNeighbours) {
  EXPECT_THAT(*with_value(kText, "/cluster/fabric", R"("fat-tree")"),
              HasSubstr(R"("nodes": 2, "fabric": "fat-tree" })"));
  EXPECT_THAT(*with_value(kText, "/training/precision", R"("fp16")"),
              HasSubstr("8192,\n    \"precision\": \"fp16\"\n  }"));
}

TEST(WithValue, MakesTheObjectsOnTheWay) {
  EXPECT_THAT(*with_value(kText, "/plan/overlap/pipeline", "true"),
              HasSubstr(R"("plan": { "overlap": { "pipeline": true } })"));
}

TEST(WithValue, TakesAKeyOutWithItsComma) {
  EXPECT_THAT(*with_value(kText, "/cluster/nodes", std::nullopt),
              HasSubstr(R"({ "node": "dgx-h100-80gb" },)"));
  EXPECT_THAT(*with_value(kText, "/training/global_batch", std::nullopt),
              HasSubstr("{\n    \"sequence_length\": 8192\n  }"));
}

TEST(WithValue, RefusesTextThatIsNoJson) {
  EXPECT_EQ(with_value("{\n  oops", "/a", "1").error().where, "line 2, column 3");
}

TEST(WithTyped, UnderstandsWhatAPersonTypes) {
  EXPECT_THAT(*with_typed(kText, "/price", "2.99 USD/h"), HasSubstr(R"("price": "2.99 USD/h")"));
  EXPECT_THAT(*with_typed(kText, "/plan/schedule", "1f1b"), HasSubstr(R"("schedule": "1f1b")"));
  EXPECT_THAT(*with_typed(kText, "/planner/tensor_parallel", "4, 8"),
              HasSubstr(R"("tensor_parallel": [4, 8])"));
  EXPECT_THAT(*with_typed(kText, "/plan/recompute", R"({"full": 4})"),
              HasSubstr(R"("recompute": {"full": 4})"));
  EXPECT_EQ(with_typed(*with_typed(kText, "/name", "a"), "/name", " "), kText);
}

const FormRow& row_of(const Form& form, std::string_view pointer) {
  const auto found = std::ranges::find(form.rows, pointer, &FormRow::pointer);
  if (found == form.rows.end()) throw std::runtime_error(std::string(pointer));
  return *found;
}

TEST(Form, HasARowForEveryKeyOfTheTableWithWhatStandsThere) {
  const Form form = *form_of(kText);
  EXPECT_EQ(form.kind, "scenario");
  EXPECT_EQ(row_of(form, "/model").value, "llama-3.1-8b");
  EXPECT_EQ(row_of(form, "/model").editor, FormEditor::reference);
  EXPECT_EQ(row_of(form, "/training/sequence_length").value, "8192");
  const FormRow& degree = row_of(form, "/plan/tensor_parallel");
  EXPECT_FALSE(degree.present);
  EXPECT_EQ(degree.absent, "1");
  EXPECT_EQ(form.rows[static_cast<std::size_t>(degree.parent)].key, "plan");
}

TEST(LineOf, FindsTheValueThatAnErrorNames) {
  const auto wrong = with_value(kText, "/training/global_batch", "-1");
  const auto scenario = parse_scenario_at(*wrong, "a.json");
  ASSERT_FALSE(scenario.has_value());
  EXPECT_EQ(line_of(*wrong, "a.json", scenario.error()), 6);
}

TEST(LineOf, IsThatOfTheSyntaxErrorWhereTheTextIsNoJson) {
  const std::string wrong = "{\n \"trainyard\": \"scenario/1\",\n oops }";
  EXPECT_EQ(line_of(wrong, "a.json", parse_scenario_at(wrong, "a.json").error()), 3);
}

TEST(LineOf, IsTheSecondOneOfAKeyThatIsThereTwice) {
  const std::string wrong = "{\n \"name\": \"a\",\n \"name\": \"b\"\n}";
  EXPECT_EQ(line_of(wrong, "a.json", parse_scenario_at(wrong, "a.json").error()), 3);
}

// For any malformed document the editor has an answer and a line inside the text.
TEST(Editing, SurvivesEveryMalformedDocument) {
  for (const char* folder : {"meaning", "shape", "text"}) {
    for (const auto& entry : std::filesystem::directory_iterator(test_folder() / "bad" / folder)) {
      const auto text = read_file(entry.path());
      if (!text) continue;
      const auto scenario = parse_scenario_at(*text, entry.path());
      const auto lines = 1 + std::ranges::count(*text, '\n');
      if (!scenario) {
        EXPECT_LE(line_of(*text, entry.path(), scenario.error()), lines);
      }
      static_cast<void>(form_of(*text));
      static_cast<void>(with_typed(*text, "/plan/tensor_parallel", "8"));
    }
  }
}

}  // namespace
}  // namespace trainyard
