// Reads the bytes of a document. Only a regular file of bounded size is read, so that no reference
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

// Checks that it is a regular file of at most so many bytes; errors as above.
Expected<void> check_readable(const std::filesystem::path& file, std::size_t most);

// The system's text for an error number.
std::string reason_of(int error);

}  // namespace trainyard
