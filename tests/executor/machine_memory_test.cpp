// The memory of a machine, and the part of it that a container may use.
#include "executor/host/machine_memory.h"

#include <gtest/gtest.h>
#include <sys/sysinfo.h>

#include <fstream>
#include <string>

namespace trainyard {
namespace {

namespace fs = std::filesystem;

double of_the_machine() {
  struct sysinfo info {};
  ::sysinfo(&info);
  return static_cast<double>(info.totalram) * info.mem_unit;
}

// A folder of control groups that state this limit.
fs::path groups_with(const std::string& limit) {
  fs::path folder = fs::path(testing::TempDir()) / "groups";
  fs::create_directories(folder);
  std::ofstream(folder / "memory.max") << limit << '\n';
  return folder;
}

TEST(MachineMemory, IsWhatTheContainerMayTake) {
  EXPECT_EQ(machine_memory(groups_with("67108864")), Bytes(64 << 20));
}

TEST(MachineMemory, IsAllOfItWithoutALimit) {
  EXPECT_EQ(machine_memory(groups_with("max")), Bytes(of_the_machine()));
  EXPECT_EQ(machine_memory(fs::path(testing::TempDir()) / "no such folder"),
            Bytes(of_the_machine()));
}

TEST(MachineMemory, IsNoMoreThanThereIs) {
  EXPECT_EQ(machine_memory(groups_with("9000000000000000000")), Bytes(of_the_machine()));
}

}  // namespace
}  // namespace trainyard
