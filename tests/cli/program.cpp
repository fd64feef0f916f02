#include "tests/cli/program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace trainyard {

namespace {

// Removed when the test program ends.
struct ScratchRoot {
  std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("trainyard-cli-{}", getpid());
  ~ScratchRoot() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
};

}  // namespace

void expect_refused(const std::string& arguments, const std::string& words) {
  const Ran ran = run_trainyard(arguments);
  EXPECT_EQ(ran.status, 2) << arguments;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
  EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
}

std::filesystem::path scratch_folder() {
  static const ScratchRoot root;
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path folder =
      root.folder / fmt::format("{}-{}", info->test_suite_name(), info->name());
  std::filesystem::create_directories(folder);
  return folder;
}

std::filesystem::path write_scratch(const std::string& name, const std::string& text) {
  const std::filesystem::path file = scratch_folder() / name;
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

std::string read_text(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

Ran run_trainyard(const std::string& arguments, const std::string& prefix) {
  const std::filesystem::path folder = scratch_folder();
  const std::filesystem::path out = folder / "stdout";
  const std::filesystem::path err = folder / "stderr";
  // A redirection in `arguments` comes later and wins.
  const std::string command = fmt::format("{} {} >'{}' 2>'{}' {}", prefix, TRAINYARD_PROGRAM,
                                          out.string(), err.string(), arguments);
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_text(out),
          read_text(err)};
}

std::string quoted(const std::filesystem::path& file) { return "'" + file.string() + "'"; }

std::string words_of(const std::string& text) {
  std::string words;
  for (const char c : text) {
    const char plain = c == '\n' ? ' ' : c;
    if (plain != ' ' || (!words.empty() && words.back() != ' ')) words += plain;
  }
  return words;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::filesystem::path small_scenario(const std::string& extra) {
  return write_scratch("small.json", fmt::format(R"({{
    "trainyard": "scenario/1", "name": "small", "model": "llama-3.1-8b",
    "cluster": {{ "node": "dgx-h100-80gb", "nodes": 1 }},
    "training": {{ "global_batch": 32, "sequence_length": 8192, "precision": "bf16",
                   "optimizer": "adamw", "stack": "megatron-core" }}{} }})",
                                                 extra));
}

std::filesystem::path unlike_groups(int old_nodes, const std::string& extra) {
  return write_scratch(fmt::format("groups-{}.json", old_nodes), fmt::format(R"({{
    "trainyard": "scenario/1", "name": "groups", "model": "llama-3.1-8b",
    "cluster": {{ "groups": [{{ "node": "dgx-a100-80gb", "nodes": {} }},
                             {{ "node": "dgx-h100-80gb", "nodes": 2 }}] }},
    "training": {{ "global_batch": 128, "sequence_length": 8192, "precision": "bf16",
                   "optimizer": "adamw", "stack": "megatron-core" }}{} }})",
                                                                             old_nodes, extra));
}

}  // namespace trainyard
