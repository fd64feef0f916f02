// Training tokens from a file of bare numbers: 16 bits each where the vocabulary fits, else 32
// bits, in the machine's byte order (what nanoGPT and Megatron call .bin).
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "model/expected.h"

namespace trainyard {

// The first `most` tokens of a regular file: a run reads no more than it trains on, however large
// the file is. The error names the file and, where a token lies outside the vocabulary, which one.
Expected<std::shared_ptr<const std::vector<std::uint32_t>>> read_tokens(
    const std::filesystem::path& file, std::int64_t vocabulary, std::int64_t most);

}  // namespace trainyard
