#include "scenarios/json/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "scenarios/json/output_file.h"
#include "scenarios/scenario.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("trainyard_files." + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A scenario whose model is the file `path`.
  fs::path scenario_with_model(const std::string& path) const {
    const fs::path file = folder_ / "scenario.json";
    std::ofstream(file) << R"({"trainyard": "scenario/1", "model": ")" << path
                        << R"(", "cluster": {"node": "dgx-h100-80gb", "nodes": 1},)"
                        << R"( "training": {"global_batch": 8, "sequence_length": 2048}})";
    return file;
  }

  fs::path folder_;
};

TEST_F(Files, FifoIsRefusedAndNeverOpened) {
  const fs::path fifo = folder_ / "fifo.json";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  // Opening it would block for ever: nobody writes to it.
  EXPECT_EQ(read_file(fifo).error().message, "is a FIFO; allowed: a regular file");
  EXPECT_EQ(read_scenario(scenario_with_model("fifo.json")).error().message,
            "found \"fifo.json\", which is a FIFO; allowed: a regular file");
}

TEST_F(Files, DeviceDirectoryAndSocketLikeThingsAreRefused) {
  EXPECT_EQ(read_file("/dev/zero").error().message, "is a device; allowed: a regular file");
  EXPECT_EQ(read_file(folder_).error().message, "is a directory; allowed: a regular file");
  EXPECT_EQ(read_file(folder_ / "absent.json").error().message,
            "does not exist; allowed: a regular file");
}

TEST_F(Files, LinkToADeviceIsADevice) {
  fs::create_symlink("/dev/zero", folder_ / "link.json");
  EXPECT_EQ(read_file(folder_ / "link.json").error().message,
            "is a device; allowed: a regular file");
}

TEST_F(Files, LinkThatLeadsToItselfIsAnError) {
  fs::create_symlink("loop.json", folder_ / "loop.json");
  EXPECT_FALSE(read_file(folder_ / "loop.json").has_value());
  EXPECT_FALSE(read_scenario(scenario_with_model("loop.json")).has_value());
}

TEST_F(Files, HundredMegabytesAreRefusedUnread) {
  const fs::path big = folder_ / "big.json";
  std::ofstream(big) << "{";
  fs::resize_file(big, 100'000'000);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(read_scenario(big).error().message,
            "has 100000000 bytes; allowed: at most 16777216 (16 MiB)");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(100));
}

TEST_F(Files, LargestDocumentIsReadToItsEnd) {
  const fs::path file = folder_ / "largest.json";
  std::ofstream(file) << "{}";
  fs::resize_file(file, kLargestDocument);
  EXPECT_EQ(read_file(file)->size(), kLargestDocument);
  fs::resize_file(file, kLargestDocument + 1);
  EXPECT_FALSE(read_file(file).has_value());
}

TEST_F(Files, NestingOfAHundredThousandIsOneErrorLine) {
  const fs::path file = folder_ / "deep.json";
  std::ofstream(file) << "{\"trainyard\": " << std::string(100'000, '[')
                      << std::string(100'000, ']') << "}";
  EXPECT_EQ(read_scenario(file).error().message, "nested deeper than 64 levels");
}

TEST_F(Files, WritingReplacesTheWholeFileAndLeavesNothingElse) {
  const fs::path file = folder_ / "out.json";
  ASSERT_TRUE(write_file(file, "first, and longer").has_value());
  ASSERT_TRUE(write_file(file, "second").has_value());
  EXPECT_EQ(read_file(file).value(), "second");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(Files, ReplacedHandOnTheirPermissions) {
  const fs::path file = folder_ / "private.json";
  ASSERT_TRUE(write_file(file, "first").has_value());
  for (const auto mode : {fs::perms::owner_read | fs::perms::owner_write, fs::perms(0664)}) {
    fs::permissions(file, mode);
    ASSERT_TRUE(write_file(file, "second").has_value());
    EXPECT_EQ(fs::status(file).permissions(), mode);
  }
}

// The test uses links, so that a failure would not replace a real device file.
TEST_F(Files, AreWrittenWhereALinkLeads) {
  const fs::path file = folder_ / "target.json", link = folder_ / "link.json";
  ASSERT_TRUE(write_file(file, "first").has_value());
  fs::create_symlink("target.json", link);
  ASSERT_TRUE(write_file(link, "second").has_value());
  EXPECT_TRUE(fs::is_symlink(link));
  std::ifstream stream(file);
  std::string text;
  std::getline(stream, text);
  EXPECT_EQ(text, "second");
}

TEST_F(Files, ThatAreDevicesAreNotReplaced) {
  const fs::path nothing = folder_ / "nothing", full = folder_ / "full";
  fs::create_symlink("/dev/null", nothing);
  fs::create_symlink("/dev/full", full);
  EXPECT_TRUE(write_file(nothing, "x").has_value());
  const auto written = write_file(full, "x");
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().where, full.string());
  EXPECT_NE(written.error().message.find("cannot be written"), std::string::npos);
  EXPECT_TRUE(fs::is_symlink(nothing) && fs::is_symlink(full));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(Files, WritingIntoAMissingFolderIsAnErrorThatNamesTheFile) {
  const auto written = write_file(folder_ / "absent" / "out.json", "x");
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().where, (folder_ / "absent" / "out.json").string());
}

// The check leaves what exists as it is, and does not wait for a pipe that nobody reads.
TEST_F(Files, AreKnownToBeWritableBeforeTheyAreWritten) {
  const fs::path file = folder_ / "out.json", pipe = folder_ / "pipe";
  EXPECT_TRUE(check_writable(file).has_value());
  EXPECT_FALSE(fs::exists(file));
  ASSERT_TRUE(write_file(file, "first").has_value());
  EXPECT_TRUE(check_writable(file).has_value());
  EXPECT_EQ(read_file(file).value(), "first");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(check_writable(pipe).has_value());
  EXPECT_TRUE(check_writable("/dev/null").has_value());
  for (const fs::path& not_a_file : {folder_, folder_ / "absent" / "out.json", file / "out.json"}) {
    const auto writable = check_writable(not_a_file);
    ASSERT_FALSE(writable.has_value()) << not_a_file;
    EXPECT_EQ(writable.error().where, not_a_file.string());
  }
}

}  // namespace
}  // namespace trainyard
