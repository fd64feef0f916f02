// Runs the built program as a user does and looks at what comes out.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace trainyard {

using PrintedJson = nlohmann::json;

struct Ran {
  int status = 0;  // −signal where one ended the shell or what it ran in its place
  std::string out, err;
};

// `arguments` as a shell takes them; `prefix` goes before the program ("NO_COLOR=1", "timeout 1").
Ran run_trainyard(const std::string& arguments, const std::string& prefix = "");

// A folder of this test alone, empty at its start.
std::filesystem::path scratch_folder();
std::filesystem::path write_scratch(const std::string& name, const std::string& text);
std::string read_text(const std::filesystem::path& file);

// As the shell takes a path of spaces.
std::string quoted(const std::filesystem::path& file);

std::vector<std::string> lines_of(const std::string& text);
// Without the breaks and indents of paragraphs.
std::string words_of(const std::string& text);

// Llama-3.1-8B on one node of eight H100; `extra` are further sections, with a leading comma.
std::filesystem::path small_scenario(const std::string& extra = "");
// The same on `old_nodes` nodes of eight A100 beside two of eight H100.
std::filesystem::path unlike_groups(int old_nodes, const std::string& extra = "");

}  // namespace trainyard
