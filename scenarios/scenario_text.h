// A scenario that is being edited: read from its text, while the file need not be saved or even
// exist.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "model/expected.h"

namespace trainyard {

struct Question;
struct Scenario;

// Like read_scenario and read_question for a document at `file` with this text: relative paths
// start from there, and errors name it.
Expected<Scenario> parse_scenario_at(std::string_view text, const std::filesystem::path& file);
Expected<Question> question_of(std::string_view text, const std::filesystem::path& file);

// The document `text` at `file`, rewritten for a place at `destination`: relative references still
// lead to the same files.
Expected<std::string> scenario_at(std::string_view text, const std::filesystem::path& file,
                                  const std::filesystem::path& destination);

}  // namespace trainyard
