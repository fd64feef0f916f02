// Tokens to train on, from a file of bare numbers: 16 bits each where the vocabulary fits in them,
// else 32 bits, as the machine stores them (what nanoGPT and Megatron call .bin).
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "model/expected.h"

namespace trainyard {

// The first `most` of a regular file: a run reads no more of it than it trains on, however large it
// is. The error names the file, and where a token is no word of the vocabulary.
Expected<std::shared_ptr<const std::vector<std::uint32_t>>> read_tokens(
    const std::filesystem::path& file, std::int64_t vocabulary, std::int64_t most);

}  // namespace trainyard
