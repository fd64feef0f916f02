// Untrusted and broken files in the real window: a line says what is wrong, and the window goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QStatusBar>

#include "gui/pages/timeline_page.h"
#include "gui/presenters/accuracy_check.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/plan/explore.h"
#include "gui/presenters/sweep/sweep_run.h"
#include "gui/presenters/timeline/step_play.h"
#include "tests/gui/window.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Stranger : public Window {
 protected:
  std::string message() { return window_.statusBar()->currentMessage().toStdString(); }
  void reopen() {
    ASSERT_TRUE(window_.open_file(gui_home() / "case.json"));
    window_.statusBar()->clearMessage();
  }
  bool is_well() { return window_.explore().candidate().has_value(); }
};

std::vector<fs::path> seeds() {
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(TRAINYARD_SOURCE) / "tests" / "fuzz" / "seeds")) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

// The files are the seeds of the fuzzers: documents of every kind, and files that are no documents.
TEST_F(Stranger, EveryKindOfFileIsOpenedAndDroppedAndTheWindowGoesOn) {
  const std::vector<fs::path> files = seeds();
  EXPECT_GT(files.size(), 30u);
  for (const fs::path& file : files) {
    reopen();
    if (window_.open_file(file)) {
      const QString& problem = window_.document().problem().message;
      EXPECT_NE(problem.isEmpty(), window_.document().question() == nullptr) << file;
      EXPECT_FALSE(problem.contains(QLatin1Char('\n'))) << file;
    } else {
      EXPECT_THAT(message(), HasSubstr("allowed")) << file;
    }
    reopen();
    drop(file);
    const bool is_taken = window_.document().modified() ||
                          window_.document().file() != gui_home() / "case.json" ||
                          file.extension() == ".sqlite";
    const bool is_said = !message().empty() && !message().ends_with(" is open.");
    EXPECT_NE(is_taken, is_said) << file;
  }
  reopen();
  EXPECT_TRUE(is_well());
}

TEST_F(Stranger, EveryFileIsRefusedAsATraceOrShown) {
  auto& play = *window_.findChild<StepPlay*>();
  for (const fs::path& file : seeds()) {
    const auto before = play.step();
    play.open(file);
    ASSERT_TRUE(wait_until([&] { return !play.busy(); }));
    EXPECT_NE(play.step() != before, !play.problem().isEmpty()) << file;
  }
  EXPECT_TRUE(is_well());
}

TEST_F(Stranger, AFileOf100MBIsRefusedByItsSize) {
  const fs::path large = written("large.json", "{");
  fs::resize_file(large, 100'000'000);
  EXPECT_FALSE(window_.open_file(large));
  EXPECT_THAT(message(), HasSubstr("100000000 bytes"));
  window_.statusBar()->clearMessage();
  drop(large);
  EXPECT_THAT(message(), HasSubstr("100000000 bytes"));
  EXPECT_TRUE(is_well());
  fs::remove(large);
}

// The document with the cycle is that of the corpus.
TEST_F(Stranger, AReferenceThatLeadsBackToItselfIsNamedAtItsLine) {
  const auto bad = fs::path(TRAINYARD_SOURCE) / "tests" / "scenarios" / "bad" / "meaning";
  ASSERT_TRUE(window_.open_file(bad / "reference_cycle.json"));
  const DocumentProblem& problem = window_.document().problem();
  EXPECT_FALSE(problem.message.isEmpty());
  EXPECT_EQ(window_.document().question(), nullptr);
  reopen();
  EXPECT_TRUE(is_well());
}

}  // namespace
}  // namespace trainyard
