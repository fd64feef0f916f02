// Temporary folders that exist as long as their owner.
#include "executor/host/temporary_folder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

namespace trainyard {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolder, GoesWithEverythingInItWhenItsOwnerEnds) {
  fs::path path;
  {
    const auto folder = TemporaryFolder::make("test", testing::TempDir());
    ASSERT_TRUE(folder) << folder.error().message;
    path = folder->path();
    EXPECT_EQ(path.parent_path(), fs::path(testing::TempDir() + "/").parent_path());
    EXPECT_TRUE(path.filename().string().starts_with("trainyard-test-")) << path;
    fs::create_directories(path / "below");
    std::ofstream(path / "below" / "file") << "text";
  }
  EXPECT_FALSE(fs::exists(path));
}

// Ranks in two containers may have the same process number and share a disk.
TEST(TemporaryFolder, HasANameOfItsOwn) {
  const auto one = TemporaryFolder::make("test", testing::TempDir());
  const auto other = TemporaryFolder::make("test", testing::TempDir());
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->path(), other->path());
}

TEST(TemporaryFolder, IsKeptByWhomItIsMovedTo) {
  auto made = TemporaryFolder::make("test", testing::TempDir());
  ASSERT_TRUE(made);
  std::optional<TemporaryFolder> owner(*std::move(made));
  made = tl::unexpected(Error{});
  EXPECT_TRUE(fs::exists(owner->path()));
  const fs::path path = owner->path();
  owner.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolder, StaysWhereOthersHaveItNow) {
  fs::path path;
  {
    auto folder = TemporaryFolder::make("test", testing::TempDir());
    ASSERT_TRUE(folder);
    path = folder->release();
  }
  EXPECT_TRUE(fs::remove(path));
}

TEST(TemporaryFolder, IsRemovedByWhatEndsTheProcess) {
  auto folder = TemporaryFolder::make("test", testing::TempDir());
  ASSERT_TRUE(folder);
  const auto remove = folder->remover();
  const fs::path path = folder->release();
  EXPECT_TRUE(fs::exists(path));
  remove();
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolder, SaysWhereNoneCanBeMade) {
  const fs::path nowhere = fs::path(testing::TempDir()) / "nowhere";
  const auto folder = TemporaryFolder::make("test", nowhere);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().where, nowhere.string());
  EXPECT_EQ(folder.error().message,
            std::string("no temporary folder can be made there: ") + std::strerror(ENOENT));
}

}  // namespace
}  // namespace trainyard
