// A scenario that is being edited: the text is at hand, the file need not be saved or even exist.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "model/expected.h"

namespace trainyard {

struct Question;
struct Scenario;

// As read_scenario and read_question of the document at `file`: paths are relative to it, and error
// lines name it.
Expected<Scenario> parse_scenario_at(std::string_view text, const std::filesystem::path& file);
Expected<Question> question_of(std::string_view text, const std::filesystem::path& file);

// The document `text` of `file` as one at `destination` must write it: references by a relative
// path lead where they did.
Expected<std::string> scenario_at(std::string_view text, const std::filesystem::path& file,
                                  const std::filesystem::path& destination);

}  // namespace trainyard
