// Every document in tests/scenarios/bad/ is refused with its line in bad/expected.txt. Those in
// text/ are not JSON; those in shape/ are also refused by the JSON Schema; those in meaning/ break
// rules that a schema cannot express (duplicate keys, ranges of quantities, references, rules
// across fields).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "scenarios/scenario.h"
#include "tests/scenarios/test_folder.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

std::string error_line(const fs::path& file) {
  const auto scenario = read_scenario(file);
  if (scenario) return "accepted";
  return scenario.error().where + ": " + scenario.error().message;
}

// An expected line that ends in "..." is only a beginning; a list of names that grows follows it.
void expect_line(const std::string& found, const std::string& expected) {
  const bool open = expected.ends_with("...");
  EXPECT_EQ(open ? found.substr(0, expected.size() - 3) + "..." : found, expected);
}

// Expected lines by document. A line begins with the document's name, or with "NAME => " if the
// error is in a document that NAME refers to.
std::map<std::string, std::string> expected_lines() {
  std::map<std::string, std::string> lines;
  std::ifstream stream(test_folder() / "bad" / "expected.txt");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t arrow = line.find(" => ");
    const std::string name = line.substr(0, line.find(".json") + 5);
    lines[name] = arrow == std::string::npos ? line : line.substr(arrow + 4);
  }
  return lines;
}

TEST(BadDocuments, AreRefusedWithTheExpectedLine) {
  const auto expected = expected_lines();
  ASSERT_GE(expected.size(), 80U);
  const fs::path before = fs::current_path();
  fs::current_path(test_folder() / "bad");
  for (const auto& [name, line] : expected) expect_line(error_line(name), line);
  fs::current_path(before);
}

TEST(BadDocuments, AllHaveAnExpectedLine) {
  const auto expected = expected_lines();
  for (const char* folder : {"text", "shape", "meaning"}) {
    for (const auto& entry : fs::directory_iterator(test_folder() / "bad" / folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string name = fs::path(folder) / entry.path().filename();
      EXPECT_TRUE(expected.contains(name)) << name;
    }
  }
}

TEST(BadDocuments, GiveOneLineOfBoundedLength) {
  for (const auto& [name, line] : expected_lines()) {
    EXPECT_EQ(line.find('\n'), std::string::npos) << name;
    EXPECT_LT(line.size(), 800U) << name;
  }
}

}  // namespace
}  // namespace trainyard
