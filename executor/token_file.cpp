#include "executor/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

namespace trainyard {
namespace {

// Tokens take 4 GiB then; no test run needs more.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 30;

Expected<std::int64_t> size_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return failure(file.string(), "cannot be read");
  if (!std::filesystem::is_regular_file(file, error)) {
    return failure(file.string(), "found no regular file; allowed is one of tokens");
  }
  const auto bytes = std::filesystem::file_size(file, error);
  if (error) return failure(file.string(), "cannot be read");
  return static_cast<std::int64_t>(bytes);
}

}  // namespace

Expected<std::shared_ptr<const std::vector<std::uint32_t>>> read_tokens(
    const std::filesystem::path& file, std::int64_t vocabulary, std::int64_t most) {
  constexpr std::int64_t kInTwoBytes = 1 << 16;
  const std::int64_t width = vocabulary <= kInTwoBytes ? 2 : 4;
  const auto size = size_of(file);
  if (!size) return tl::unexpected(size.error());
  if (*size == 0 || *size % width != 0) {
    return failure(file.string(), fmt::format("found {} bytes; allowed are tokens of {} bytes each",
                                              *size, width));
  }
  const auto count = static_cast<std::size_t>(std::min(*size / width, most));
  if (count > static_cast<std::size_t>(kMostTokens)) {
    return failure(file.string(), fmt::format("found {} tokens for the steps of this run; allowed "
                                              "are {}",
                                              count, kMostTokens));
  }
  std::string bytes(count * static_cast<std::size_t>(width), '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!stream) return failure(file.string(), "cannot be read");
  auto tokens = std::make_shared<std::vector<std::uint32_t>>(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(&(*tokens)[i], bytes.data() + i * static_cast<std::size_t>(width),
                static_cast<std::size_t>(width));
    if ((*tokens)[i] < vocabulary) continue;
    return failure(file.string(), fmt::format("token {}: found {}; allowed are 0 to {}", i,
                                              (*tokens)[i], vocabulary - 1));
  }
  return tokens;
}

}  // namespace trainyard
