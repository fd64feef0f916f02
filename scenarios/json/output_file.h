// Writing a file whole or not at all.
#pragma once

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

#include "model/expected.h"

namespace trainyard {

// A file that is written piece by piece, whole or not at all: a temporary file beside it, renamed
// when it is complete and on the disk, and removed when it is given up. A file that it replaces
// hands on its permissions.
class OutputFile {
 public:
  // A pipe that nobody reads is an error, after some seconds.
  static Expected<OutputFile> open(const std::filesystem::path& file);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // What fails is said by finish().
  void write(std::string_view text) {
    const bool whole = std::fwrite(text.data(), 1, text.size(), stream_.get()) == text.size();
    if (!whole && failed_ == 0) failed_ = errno;
  }
  Expected<void> finish();

 private:
  struct Close {
    void operator()(std::FILE* stream) const { std::fclose(stream); }
  };
  OutputFile(std::filesystem::path file, std::filesystem::path temporary);
  void keep_mode_of(const std::filesystem::file_status& replaced);
  void flush();

  std::filesystem::path file_, temporary_;  // the latter empty: there is none any more
  std::unique_ptr<std::FILE, Close> stream_;
  int failed_ = 0;  // errno of what failed first
};

// Before work whose results are to go there: whether a file can be written, as far as can be known
// without writing it. A pipe is not opened, whose reader would find its end.
Expected<void> check_writable(const std::filesystem::path& file);

// Writes the whole file or nothing.
Expected<void> write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace trainyard
