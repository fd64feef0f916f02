// A document's text as an editor needs it: where each value stands, a change of one value that
// leaves the rest of the text as its author laid it out, and the line that an error means. Works on
// text that does not parse as well, as far as it goes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "model/plan/plan.h"

namespace trainyard {

// Bytes of a value in a text, and of the key before it.
struct ValuePlace {
  std::string pointer;
  std::size_t key = 0;  // first byte of the key; of the value where there is none
  std::size_t begin = 0, end = 0;
};

// Every value in order of its first byte, the whole document first. Ends where the text stops being
// JSON.
std::vector<ValuePlace> value_places(std::string_view text);

// The text with `json` as the value at `pointer`; objects on the way are made. Nothing for `json`:
// the key is taken out. Fails where the text or the pointer does not lead there.
Expected<std::string> with_value(std::string_view text, std::string_view pointer,
                                 std::optional<std::string_view> json);

// The same with what a person typed for one key of a form (scenarios/form.h): "8", "400 Gb/s",
// "tp-cp-ep-dp-pp", "[4, 8]". Empty: the key is taken out.
Expected<std::string> with_typed(std::string_view text, std::string_view pointer,
                                 std::string_view typed);

// The text with its plan replaced.
Expected<std::string> with_plan(std::string_view text, const Plan& plan);

// What two documents have equal that differ in their plan, their name and their layout only: what
// is asked is the same. A text that does not parse is its own.
std::string text_without_plan(std::string_view text);

// The document `text` at `file` with another one put where its kind belongs: a model, node, fabric
// or stack document, a Hugging Face config. Empty: the other one is a scenario itself.
Expected<std::string> with_document(std::string_view text, const std::filesystem::path& file,
                                    const std::filesystem::path& other);

// Line (from 1) of `text`, the document at `file`, that an error of its reader is about; 0: it is
// about another document.
int line_of(std::string_view text, const std::filesystem::path& file, const Error& error);

}  // namespace trainyard
