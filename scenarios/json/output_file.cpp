#include "scenarios/json/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "scenarios/json/file.h"

namespace trainyard {

namespace fs = std::filesystem;

OutputFile::OutputFile(fs::path file, fs::path temporary)
    : file_(std::move(file)),
      temporary_(std::move(temporary)),
      stream_(temporary_.empty() ? file_ : temporary_, std::ios::binary) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : file_(std::move(other.file_)),
      temporary_(std::exchange(other.temporary_, {})),
      stream_(std::move(other.stream_)) {}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  stream_.close();
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

// What a link names is replaced, and the link stays; devices and pipes, which no file can stand
// for, are written as they are.
Expected<OutputFile> OutputFile::open(const fs::path& file) {
  std::error_code ignored;
  const fs::file_status there = fs::status(file, ignored);
  const bool replaced = !fs::exists(there) || fs::is_regular_file(there);
  const bool linked =
      fs::is_regular_file(there) && fs::is_symlink(fs::symlink_status(file, ignored));
  const fs::path target = linked ? fs::canonical(file, ignored) : file;
  OutputFile output(
      target, replaced ? fmt::format("{}.{}.tmp", target.string(), ::getpid()) : std::string());
  if (output.stream_) return output;
  return failure(file.string(), fmt::format("cannot be written: {}", reason_of(errno)));
}

Expected<void> OutputFile::finish() {
  stream_.close();
  if (!stream_)
    return failure(file_.string(), fmt::format("cannot be written: {}", reason_of(errno)));
  if (temporary_.empty()) return {};
  std::error_code error;
  fs::rename(temporary_, file_, error);
  if (error) return failure(file_.string(), fmt::format("cannot be written: {}", error.message()));
  temporary_.clear();
  return {};
}

Expected<void> check_writable(const fs::path& file) {
  std::error_code ignored;
  const fs::file_status there = fs::status(file, ignored);
  if (fs::is_fifo(there) || fs::is_character_file(there)) {
    if (::access(file.c_str(), W_OK) == 0) return {};
    return failure(file.string(), fmt::format("cannot be written: {}", reason_of(errno)));
  }
  return OutputFile::open(file).map([](const OutputFile&) {});
}

Expected<void> write_file(const fs::path& file, std::string_view content) {
  auto output = OutputFile::open(file);
  if (!output) return tl::unexpected(output.error());
  output->write(content);
  return output->finish();
}

}  // namespace trainyard
