// Runs the built program through a shell, as a user does, and returns its exit status and output.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace trainyard {

using PrintedJson = nlohmann::json;

struct Ran {
  int status = 0;  // exit status; −signal if a signal ended the command
  std::string out, err;
};

// Runs the program with `arguments`, which a shell splits and expands; `prefix` stands before the
// program's name, e.g. "NO_COLOR=1" or "timeout 1".
Ran run_trainyard(const std::string& arguments, const std::string& prefix = "");

// Expects that the program refuses these arguments: exit status 2, and one line with `words`,
// alone.
void expect_refused(const std::string& arguments, const std::string& words);

// A folder that only the running test uses; it is empty when the test starts.
std::filesystem::path scratch_folder();
std::filesystem::path write_scratch(const std::string& name, const std::string& text);
std::string read_text(const std::filesystem::path& file);

// The path in quotes, so that the shell accepts spaces in it.
std::string quoted(const std::filesystem::path& file);

std::vector<std::string> lines_of(const std::string& text);
// The text on one line: every run of line breaks and spaces becomes one space.
std::string words_of(const std::string& text);

// Writes a scenario of Llama-3.1-8B on one node of eight H100. `extra` adds sections to the
// document and begins with a comma.
std::filesystem::path small_scenario(const std::string& extra = "");
// Like small_scenario, but on two groups: `old_nodes` nodes of eight A100, and two nodes of eight
// H100.
std::filesystem::path unlike_groups(int old_nodes, const std::string& extra = "");

}  // namespace trainyard
