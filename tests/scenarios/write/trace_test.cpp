#include "scenarios/write/trace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "scenarios/scenario.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// The test has a folder of its own, empty before and after.
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

bool is_whole(const std::string& trace) {
  return trace.starts_with("{\"displayTimeUnit\"") && trace.ends_with("\n]}\n");
}

TEST_F(TraceFile, IsWrittenWhereALinkLeads) {
  const fs::path file = folder_ / "target.json", link = folder_ / "link.json";
  std::ofstream(file) << "before";
  fs::create_symlink("target.json", link);
  ASSERT_TRUE(write_trace(link, simulation(), [] { return false; }));
  EXPECT_TRUE(fs::is_symlink(link));
  std::ifstream stream(file);
  EXPECT_TRUE(is_whole({std::istreambuf_iterator<char>(stream), {}}));
}

// Both ends of the pipe are held open, so that nobody waits if the pipe is replaced.
TEST_F(TraceFile, GoesThroughAPipe) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int out = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  const int held = ::open(pipe.c_str(), O_WRONLY);
  ASSERT_TRUE(out >= 0 && held >= 0 && ::fcntl(out, F_SETFL, 0) == 0);
  std::string read;
  std::thread reader([&] {
    std::array<char, 4096> block{};
    for (ssize_t n = 0; (n = ::read(out, block.data(), block.size())) > 0;) {
      read.append(block.data(), static_cast<std::size_t>(n));
    }
  });
  const auto written = write_trace(pipe, simulation(), [] { return false; });
  ::close(held);
  reader.join();
  ::close(out);
  EXPECT_TRUE(written);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(is_whole(read)) << read.size();
}

// The test uses links, so that a failure would not replace a real device file.
TEST_F(TraceFile, DoesNotReplaceADevice) {
  const fs::path nothing = folder_ / "nothing", full = folder_ / "full";
  fs::create_symlink("/dev/null", nothing);
  fs::create_symlink("/dev/full", full);
  EXPECT_TRUE(write_trace(nothing, simulation(), [] { return false; }));
  const auto written = write_trace(full, simulation(), [] { return false; });
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().where, full.string());
  EXPECT_TRUE(fs::is_symlink(nothing) && fs::is_symlink(full));
}

}  // namespace
}  // namespace trainyard
