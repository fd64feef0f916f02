// Writing a file whole or not at all.
#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

#include "model/expected.h"

namespace trainyard {

// A file that is written piece by piece, whole or not at all: a temporary file beside it, renamed
// when it is complete and removed when it is given up.
class OutputFile {
 public:
  static Expected<OutputFile> open(const std::filesystem::path& file);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  void write(std::string_view text) {
    stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  Expected<void> finish();

 private:
  OutputFile(std::filesystem::path file, std::filesystem::path temporary);

  std::filesystem::path file_, temporary_;  // the latter empty: there is none any more
  std::ofstream stream_;
};

// Before work whose results are to go there: whether a file can be written, as far as can be known
// without writing it. A pipe is not opened, whose reader would find its end.
Expected<void> check_writable(const std::filesystem::path& file);

// Writes the whole file or nothing.
Expected<void> write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace trainyard
