// A file of another tool: its text and how error lines name it, with the line of a position.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "scenarios/json/file.h"

namespace trainyard {

struct ForeignFile {
  std::string name;  // as error lines show it
  std::string stem;  // for naming what is made of it
  std::string text;

  tl::unexpected<Error> error(std::string message) const;
  tl::unexpected<Error> error_at(std::size_t position, std::string message) const;
  tl::unexpected<Error> error_in_line(std::size_t line, std::string message) const;  // from 1
};

// A regular file of at most `most` bytes; the error is complete.
Expected<ForeignFile> read_foreign_file(const std::filesystem::path& file,
                                        std::size_t most = kLargestDocument);

// Takes the next line off `text`, without its end (LF or CR LF).
std::string_view take_line(std::string_view& text);

// The words between blanks.
std::vector<std::string_view> words_of(std::string_view line);

}  // namespace trainyard
