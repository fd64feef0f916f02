// Reading a document's bytes: a regular file of bounded size and nothing else, so that no reference
// can block on a FIFO, read a device or fill the memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "model/expected.h"

namespace trainyard {

inline constexpr std::size_t kLargestDocument = std::size_t{16} << 20;  // bytes

// The error's `where` is empty; the message says what the file is and what is allowed.
Expected<std::string> read_file(const std::filesystem::path& file,
                                std::size_t most = kLargestDocument);

// Whether it is a regular file of at most so many bytes; the error as above.
Expected<void> check_readable(const std::filesystem::path& file, std::size_t most);

// What the system says of an error number.
std::string reason_of(int error);

}  // namespace trainyard
