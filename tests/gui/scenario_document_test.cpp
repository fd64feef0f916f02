#include "gui/presenters/document/scenario_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QElapsedTimer>
#include <fstream>

#include "gui/presenters/document/recovery.h"
#include "scenarios/json/file.h"
#include "scenarios/question.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;

constexpr const char* kExample = "llama-3.1-405b-16384-h100.json";

TEST(TextHistory, GoesBackAndForth) {
  TextHistory history("a");
  history.add("ab", true);
  history.add("abc", true);
  history.add("x");
  history.undo();
  EXPECT_EQ(history.text(), "abc");
  history.undo();
  EXPECT_EQ(history.text(), "a");
  EXPECT_FALSE(history.can_undo());
  history.redo();
  history.redo();
  EXPECT_EQ(history.text(), "x");
  EXPECT_FALSE(history.can_redo());
}

TEST(TextHistory, ForgetsTheOldestBeyondItsBytes) {
  TextHistory history(std::string(40, 'a'), 100);
  history.add(std::string(40, 'b'));
  history.add(std::string(40, 'c'));
  history.undo();
  EXPECT_EQ(history.text().front(), 'b');
  EXPECT_FALSE(history.can_undo());
}

TEST(ScenarioDocument, AsksAQuestionAsSoonAsItIsOpen) {
  ScenarioDocument document;
  ASSERT_TRUE(document.open(example(kExample)).has_value());
  ASSERT_NE(document.question(), nullptr);
  EXPECT_EQ(document.question()->job.job.cluster.devices(), 16384);
  EXPECT_FALSE(document.modified());
}

TEST(ScenarioDocument, NamesTheLineThatIsWrongAndGoesOn) {
  ScenarioDocument document;
  ASSERT_TRUE(document.open(example(kExample)).has_value());
  ASSERT_TRUE(document.set_value("/training/sequence_length", "-5").has_value());
  EXPECT_EQ(document.question(), nullptr);
  EXPECT_EQ(document.problem().line, 8);  // of the example
  EXPECT_EQ(document.problem().pointer, "/training/sequence_length");
  document.undo();
  EXPECT_NE(document.question(), nullptr);
  EXPECT_FALSE(document.modified());
}

TEST(ScenarioDocument, SaysWhereAPlanCannotBe) {
  ScenarioDocument document;
  ASSERT_TRUE(document.open(example(kExample)).has_value());
  ASSERT_TRUE(document.set_value("/plan/tensor_parallel", "7").has_value());
  EXPECT_EQ(document.problem().line, 14);  // of the example
}

TEST(ScenarioDocument, SavedElsewhereStillFindsWhatItRefersTo) {
  ScenarioDocument document;
  ASSERT_TRUE(document.open(example("llama-3.1-405b-2048-h100.json")).has_value());
  ASSERT_NE(document.question(), nullptr);
  ASSERT_TRUE(document.save(gui_home() / "elsewhere.json").has_value());
  EXPECT_NE(document.question(), nullptr) << document.problem().message.toStdString();
  EXPECT_FALSE(document.modified());
}

TEST(ScenarioDocument, KnowsWhichAnswersAreOfAnotherScenario) {
  ScenarioDocument document;
  ASSERT_TRUE(document.open(example(kExample)).has_value());
  const auto asked = document.question();
  ASSERT_TRUE(document.set_value("/plan/recompute", "full").has_value());
  EXPECT_TRUE(document.still_asks(asked));  // a search finds the same for any plan
  ASSERT_TRUE(document.set_value("/cluster/nodes", "1024").has_value());
  EXPECT_FALSE(document.still_asks(asked));
  EXPECT_TRUE(document.age_of(asked).startsWith(QStringLiteral("Of the scenario before")));
  document.undo();
  EXPECT_TRUE(document.still_asks(asked));
  document.set_text("{");
  EXPECT_FALSE(document.still_asks(asked));
  ASSERT_TRUE(document.open(example("llama-3.1-405b-2048-h100.json")).has_value());
  EXPECT_FALSE(document.still_asks(asked));
  EXPECT_TRUE(document.age_of(asked).startsWith(QStringLiteral("Of another scenario")));
}

// As after a change by another program: it is no other document.
TEST(ScenarioDocument, IsTheSameWhereItsFileIsReadAgain) {
  ScenarioDocument document;
  ASSERT_TRUE(document.open(example(kExample)).has_value());
  ASSERT_TRUE(document.set_value("/cluster/nodes", "1024").has_value());
  const auto asked = document.question();
  ASSERT_TRUE(document.open(example(kExample)).has_value());
  EXPECT_TRUE(document.age_of(asked).startsWith(QStringLiteral("Of the scenario before")));
}

TEST(ScenarioDocument, SeesThatAnotherProgramHasWrittenItsFile) {
  const auto file = written("shared.json", "{}");
  ScenarioDocument document;
  EXPECT_FALSE(document.changed_on_disk());
  ASSERT_TRUE(document.open(file).has_value());
  document.set_text("{ }");
  EXPECT_FALSE(document.changed_on_disk());
  written("shared.json", R"({"trainyard": "scenario/1"})");
  EXPECT_TRUE(document.changed_on_disk());
  ASSERT_TRUE(document.save(file).has_value());
  EXPECT_FALSE(document.changed_on_disk());
  std::filesystem::remove(file);  // nothing is overwritten
  EXPECT_FALSE(document.changed_on_disk());
}

TEST(ScenarioDocument, TakesAModelConfigIntoTheScenario) {
  ScenarioDocument document;
  ASSERT_TRUE(document.open(example(kExample)).has_value());
  const auto no = [] { return false; };
  ASSERT_TRUE(document.take(example("llama-3.1-405b.config.json"), no).has_value());
  EXPECT_THAT(document.text(), HasSubstr(R"({"huggingface":"./llama-3.1-405b.config.json"})"));
  EXPECT_NE(document.question(), nullptr) << document.problem().message.toStdString();
}

TEST(ScenarioDocument, RefusesAFileThatIsTooLargeAtOnce) {
  const auto file = written("large.json", "{}");
  std::filesystem::resize_file(file, std::size_t{100} << 20);
  ScenarioDocument document;
  const auto opened = document.open(file);
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("1 MiB"));
  std::filesystem::resize_file(file, 200'000);
  const auto shorter = document.open(file);
  ASSERT_FALSE(shorter.has_value());
  EXPECT_THAT(shorter.error().message, HasSubstr("200000 bytes"));
}

TEST(ScenarioDocument, SurvivesACycleOfReferences) {
  written("b.json", R"({"trainyard": "node/1", "name": "b", "device": "./b.json"})");
  const auto file = written("a.json", R"({"trainyard": "scenario/1",
 "model": "llama-3.1-8b",
 "cluster": {"node": "./b.json", "nodes": 1},
 "training": {"global_batch": 8, "sequence_length": 2048}})");
  ScenarioDocument document;
  ASSERT_TRUE(document.open(file).has_value());
  EXPECT_EQ(document.question(), nullptr);
  EXPECT_FALSE(document.problem().message.isEmpty());
}

// The recovered edits are based on the file as it was when the program died.
TEST(ScenarioDocument, ARecoveredOneSeesWhatAnotherProgramWroteSince) {
  const auto file = written("recovered.json", "{}");
  ScenarioDocument document;
  document.recover("{ \"mine\": 1 }", file, "{}");
  EXPECT_TRUE(document.modified());
  EXPECT_FALSE(document.changed_on_disk());
  written("recovered.json", "{ \"theirs\": 1 }");
  document.recover("{ \"mine\": 1 }", file, "{}");
  EXPECT_TRUE(document.modified());
  EXPECT_TRUE(document.changed_on_disk());
}

// The older format is a line with the path and then the edited text, without the saved text.
TEST(Recovery, OffersWhatAnOlderProgramLeft) {
  const std::filesystem::path folder = gui_home() / "older";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "1.autosave") << "/a.json\n{ \"mine\": 1 }";
  const std::vector<RecoveryOffer> offers = Recovery(folder).offers();
  ASSERT_EQ(offers.size(), 1U);
  EXPECT_EQ(offers[0].file, "/a.json");
  EXPECT_EQ(offers[0].saved, "");
  EXPECT_EQ(offers[0].text, "{ \"mine\": 1 }");
}

TEST(Recovery, OffersNothingOfAProgramThatRuns) {
  const Recovery other(gui_home() / "recovery");
  Recovery mine(gui_home() / "recovery");
  mine.keep("a.json", "", "text");
  EXPECT_TRUE(other.offers().empty());
}

}  // namespace
}  // namespace trainyard
