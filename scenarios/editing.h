// A document's text as an editor needs it: where each value is in the text, changes of one value
// that keep the author's layout of the rest, and the line that an error is about. value_places()
// and line_of() also work on text that does not parse, as far as it is JSON.
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

// Where a value is in a text, in bytes from its beginning.
struct ValuePlace {
  std::string pointer;
  std::size_t key = 0;  // first byte of the value's key, or of the value if it has none
  std::size_t begin = 0, end = 0;
};

// The places of all values in order of their first byte, the whole document first. Stops where the
// text is no longer JSON.
std::vector<ValuePlace> value_places(std::string_view text);

// The text with `json` as the value at `pointer`; missing objects on the way are created. Without
// `json` the key is removed. Fails where the text does not parse or the pointer leads through a
// value that is not an object.
Expected<std::string> with_value(std::string_view text, std::string_view pointer,
                                 std::optional<std::string_view> json);

// The same with what a person typed for a key of a form (scenarios/form.h): "8", "400 Gb/s",
// "tp-cp-ep-dp-pp", "[4, 8]". If nothing was typed, the key is removed.
Expected<std::string> with_typed(std::string_view text, std::string_view pointer,
                                 std::string_view typed);

// The text with its plan replaced.
Expected<std::string> with_plan(std::string_view text, const Plan& plan);

// The text without plan, name and layout: equal for two documents that ask the same question with
// different plans. A text that does not parse is returned as it is.
std::string text_without_plan(std::string_view text);

// The document `text` at `file` with a reference to the document `other` where its kind belongs:
// `other` is a model, node, fabric or stack document or a Hugging Face config. Returns an empty
// text if `other` is itself a scenario.
Expected<std::string> with_document(std::string_view text, const std::filesystem::path& file,
                                    const std::filesystem::path& other);

// The line, from 1, of the document `text` at `file` that an error of its reader is about; 0: the
// error is about another document.
int line_of(std::string_view text, const std::filesystem::path& file, const Error& error);

}  // namespace trainyard
