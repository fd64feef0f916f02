#include "scenarios/json/file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

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
  if (file.empty()) return failure("", "found an empty name; allowed: that of a regular file");
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
    if (content.size() > most) {  // it grew, or its size was unknown
      return failure("", fmt::format("has more than the {} bytes ({} MiB) that are allowed", most,
                                     most >> 20));
    }
  }
  if (std::ferror(stream.get()) != 0) return failure("", "cannot be read to its end");
  return content;
}

}  // namespace trainyard
