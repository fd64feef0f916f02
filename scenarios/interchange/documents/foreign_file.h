// A file of another tool: its text, its name in errors, and errors at a position or line of it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "scenarios/json/file.h"

namespace trainyard {

struct ForeignFile {
  std::string name;  // as errors show it
  std::string stem;  // base of the names of what is made from it
  std::string text;

  tl::unexpected<Error> error(std::string message) const;
  tl::unexpected<Error> error_at(std::size_t position, std::string message) const;
  tl::unexpected<Error> error_in_line(std::size_t line, std::string message) const;  // from 1
};

// Reads a regular file of at most `most` bytes; the error is complete.
Expected<ForeignFile> read_foreign_file(const std::filesystem::path& file,
                                        std::size_t most = kLargestDocument);

// Takes the next line off `text`, without its end (LF or CR LF).
std::string_view take_line(std::string_view& text);

// The words of a line, which blanks separate.
std::vector<std::string_view> words_of(std::string_view line);

}  // namespace trainyard
