#include "scenarios/write_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "scenarios/scenario.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// A folder of its own, empty before and after.
class TraceFile : public ::testing::Test {
 protected:
  TraceFile() { fs::create_directories(folder_); }
  ~TraceFile() override { fs::remove_all(folder_); }

  static StepSimulation simulation() {
    const Scenario scenario = read_scenario(fs::path(TRAINYARD_SOURCE_FOLDER) / "scenarios" /
                                            "cases" / "llama-2-7b-ddp-on-a100.json")
                                  .value();
    const Job& job = scenario.job;
    const Plan plan = make_plan(*scenario.plan, job.model, job.cluster, job.training).value();
    return *simulate(prepare(job), plan);
  }

  const fs::path folder_ =
      fs::path(testing::TempDir()) / ("trainyard-trace-" + std::to_string(getpid()));
};

TEST_F(TraceFile, IsAllThatIsLeftBehind) {
  const auto written = write_trace(folder_ / "trace.json", simulation(), [] { return false; });
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_TRUE(fs::exists(folder_ / "trace.json"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(TraceFile, IsNotThereAfterAnInterruption) {
  const auto written = write_trace(folder_ / "trace.json", simulation(), [] { return true; });
  EXPECT_FALSE(written);
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace trainyard
