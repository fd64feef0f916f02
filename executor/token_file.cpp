#include "executor/token_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace trainyard {

Expected<std::shared_ptr<const std::vector<std::uint32_t>>> read_tokens(
    const std::filesystem::path& file, std::int64_t vocabulary) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return failure(file.string(), "cannot be read");
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  constexpr std::int64_t kInTwoBytes = 1 << 16;
  const std::size_t width = vocabulary <= kInTwoBytes ? 2 : 4;
  if (bytes.empty() || bytes.size() % width != 0) {
    return failure(file.string(), fmt::format("found {} bytes; allowed are tokens of {} bytes each",
                                              bytes.size(), width));
  }
  auto tokens = std::make_shared<std::vector<std::uint32_t>>(bytes.size() / width);
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    std::memcpy(&(*tokens)[i], bytes.data() + i * width, width);
    if ((*tokens)[i] < vocabulary) continue;
    return failure(file.string(), fmt::format("token {}: found {}; allowed are 0 to {}", i,
                                              (*tokens)[i], vocabulary - 1));
  }
  return tokens;
}

}  // namespace trainyard
