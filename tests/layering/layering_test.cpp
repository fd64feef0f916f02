#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/layering/definitions.h"
#include "tests/layering/include_rules.h"
#include "tests/layering/machine_paths.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A source tree in which a test plants files.
class PlantedTree : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_); }

  void plant(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  IncludeReport check(const std::string& file, const std::string& text) const {
    plant(file, text);
    return check_includes(root_);
  }
  PathReport check_paths() const { return check_machine_paths(root_); }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_ = fs::path(::testing::TempDir()) /
                   ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST(Layering, HoldsInThisRepository) {
  const IncludeReport report = check_includes(TRAINYARD_SOURCE_DIR);
  EXPECT_THAT(report.violations, IsEmpty());
  EXPECT_GT(report.checked_files, 20);  // the headers of model/ alone are more
}

TEST_F(PlantedTree, IsRefusedWhenThePlannerSeesTheSimulator) {
  const auto report =
      check("planner/search.cpp", "#include <vector>\n\n#include \"simulator/engine.h\"\n");
  EXPECT_THAT(
      report.violations,
      ElementsAre("planner/search.cpp:3: includes simulator/engine.h, but planner/ sees model"));
}

TEST_F(PlantedTree, IsRefusedWhenTheModelReadsJson) {
  const auto report = check("model/cost/prices.h", "#  include <nlohmann/json.hpp>\n");
  EXPECT_THAT(
      report.violations,
      ElementsAre("model/cost/prices.h:1: includes nlohmann/json.hpp, but only scenarios/ may"));
}

TEST_F(PlantedTree, IsRefusedWhenTheModelLooksAtTheClock) {
  const auto report = check("model/clock.cpp", "#include <chrono>\n");
  EXPECT_THAT(
      report.violations,
      ElementsAre("model/clock.cpp:1: includes chrono, but model/ is values and pure functions"));
}

TEST_F(PlantedTree, IsRefusedWhenAHeaderIsNotNamedFromTheRoot) {
  const auto report = check("model/units.cpp", "#include \"units.h\"\n");
  EXPECT_THAT(report.violations,
              ElementsAre("model/units.cpp:1: includes units.h, but model/ sees itself only"));
}

TEST_F(PlantedTree, PassesAlongTheArrows) {
  const auto report = check("scenarios/reader.cpp",
                            "#include <nlohmann/json.hpp>\n#include <fstream>\n"
                            "#include \"planner/planner.h\"\n#include \"scenarios/reader.h\"\n");
  EXPECT_THAT(report.violations, IsEmpty());
  EXPECT_EQ(report.checked_files, 1);
}

TEST(MachinePaths, AreInNoFileOfThisRepository) {
  const PathReport report = check_machine_paths(TRAINYARD_SOURCE_DIR);
  EXPECT_THAT(report.violations, IsEmpty());
  EXPECT_GT(report.checked_files, 300);  // the catalog and the headers alone are more
}

TEST_F(PlantedTree, IsRefusedWhenAChartNamesTheFolderOfItsBuild) {
  plant("docs/plot.svg",
        "<svg>\n<text>/ho"
        "me/somebody/trainyard: errors</text>\n</svg>\n");
  EXPECT_THAT(check_paths().violations, ElementsAre("docs/plot.svg:2: names a path below /ho"
                                                    "me/"));
}

TEST_F(PlantedTree, MayNameRelativePathsAndWhatIsIgnored) {
  plant("README.md",
        "docs/wo"
        "rk/plan.md, ../tm"
        "p/x, ${FOLDER}/tm"
        "p/x and /tm"
        "p/ itself\n");
  plant(".gitignore", "/build/\n");
  plant("build/log.txt",
        "/tm"
        "p/scratch\n");
  EXPECT_THAT(check_paths().violations, IsEmpty());
  EXPECT_EQ(check_paths().checked_files, 2);
}

TEST(Definitions, AreInOneHeaderEach) {
  const DefinitionReport report = check_definitions(TRAINYARD_SOURCE_DIR);
  EXPECT_THAT(report.violations, IsEmpty());
  EXPECT_GT(report.checked_files, 200);
}

TEST_F(PlantedTree, IsRefusedWhenTwoHeadersDefineOneName) {
  plant("model/place.h", "struct Place {\n};\nstruct Other;\nenum class Kind { one, two };\n");
  plant("planner/place.h",
        "struct Other;\nclass Place {\n  struct Other {};\n};\nenum class Kind : int { one };\n");
  EXPECT_THAT(check_definitions(root()).violations,
              ElementsAre("planner/place.h:2: Place is defined in model/place.h too",
                          "planner/place.h:5: Kind is defined in model/place.h too"));
}

TEST_F(PlantedTree, IsRefusedWhenTwoHeadersDefineOneFunction) {
  plant("executor/random.h",
        "constexpr double uniform(std::uint64_t x) {  // −1 … 1\n"
        "inline int sum(int a, int b) { return a + b; }\n");
  plant("simulator/engine/random.h",
        "inline double uniform(std::uint64_t key) { return 1; }\n"
        "inline int sum(int a) { return a; }\n"
        "inline const int kSum = sum(1, 2);\n"
        "  int sum(int a, int b) { return b; }\n");
  EXPECT_THAT(check_definitions(root()).violations,
              ElementsAre("simulator/engine/random.h:1: uniform(std::uint64_t) is defined in "
                          "executor/random.h too"));
}

}  // namespace
}  // namespace trainyard
