#include "tests/support/shared_data.h"

#include <cstdlib>

namespace trainyard {
namespace {

class SharedData : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* named = std::getenv("TRAINYARD_SHARED")) before_ = named;
  }
  void TearDown() override {
    if (before_) {
      ::setenv("TRAINYARD_SHARED", before_->c_str(), 1);
    } else {
      ::unsetenv("TRAINYARD_SHARED");
    }
  }

 private:
  std::optional<std::string> before_;
};

TEST_F(SharedData, IsAbsentFromAFolderWithoutMeasurements) {
  ::setenv("TRAINYARD_SHARED", "/nonexistent", 1);
  EXPECT_FALSE(shared_data().has_value());
  EXPECT_EQ(shared_data_absent(), "no measured data in /nonexistent (set TRAINYARD_SHARED)");
}

TEST_F(SharedData, IsTheNamedFolder) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "trainyard_shared_data_test";
  std::filesystem::create_directories(folder / "measured");
  ::setenv("TRAINYARD_SHARED", folder.c_str(), 1);
  EXPECT_EQ(shared_data(), folder);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace trainyard
