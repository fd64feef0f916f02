// Writes a file completely or not at all.
#pragma once

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

#include "model/expected.h"

namespace trainyard {

// A file that is written piece by piece. The pieces go to a temporary file beside it, which
// replaces the file once it is complete and on disk; if writing is given up, the temporary file is
// removed. A file that is replaced hands on its permissions.
class OutputFile {
 public:
  // Fails for a pipe that nobody reads, after some seconds.
  static Expected<OutputFile> open(const std::filesystem::path& file);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // Errors are reported by finish().
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

  std::filesystem::path file_, temporary_;  // temporary_ is empty once it is gone
  std::unique_ptr<std::FILE, Close> stream_;
  int failed_ = 0;  // errno of the first failure
};

// Checks, before long work, whether its result can be written to `file`, as far as that can be
// known without writing. A pipe is not opened, because its reader would see its end.
Expected<void> check_writable(const std::filesystem::path& file);

// Writes the whole file, or nothing.
Expected<void> write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace trainyard
