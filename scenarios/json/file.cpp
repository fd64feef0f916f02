#include "scenarios/json/file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "scenarios/output.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

std::string_view type_name(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a directory";
    case fs::file_type::fifo:
      return "a FIFO";
    case fs::file_type::character:
    case fs::file_type::block:
      return "a device";
    case fs::file_type::socket:
      return "a socket";
    default:
      return "no regular file";
  }
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

std::string reason_of(int error) { return std::generic_category().message(error); }

// Without opening the file: opening a FIFO would block.
Expected<void> check_readable(const fs::path& file, std::size_t most) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found)
    return failure("", "does not exist; allowed: a regular file");
  if (status.type() == fs::file_type::none) {
    return failure("", fmt::format("cannot be read: {}", reason_of(error.value())));
  }
  if (status.type() != fs::file_type::regular) {
    return failure("", fmt::format("is {}; allowed: a regular file", type_name(status.type())));
  }
  const std::uintmax_t size = fs::file_size(file, error);
  if (!error && size > most) {
    return failure(
        "", fmt::format("has {} bytes; allowed: at most {} ({} MiB)", size, most, most >> 20));
  }
  return {};
}

Expected<std::string> read_file(const fs::path& file, std::size_t most) {
  if (const Expected<void> readable = check_readable(file, most); !readable) {
    return tl::unexpected(readable.error());
  }
  const std::unique_ptr<std::FILE, CloseFile> stream(std::fopen(file.c_str(), "rb"));
  if (!stream) return failure("", fmt::format("cannot be read: {}", reason_of(errno)));
  std::string content;
  std::string block(std::size_t{1} << 16, '\0');
  while (const std::size_t count = std::fread(block.data(), 1, block.size(), stream.get())) {
    content.append(block, 0, count);
    if (content.size() > most) {  // it grew, or its size was not known
      return failure("", fmt::format("has more than the {} bytes ({} MiB) that are allowed", most,
                                     most >> 20));
    }
  }
  if (std::ferror(stream.get()) != 0) return failure("", "cannot be read to its end");
  return content;
}

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
