// SHA-256 (FIPS 180-4), for the hashes of inputs that a result file keeps.
#pragma once

#include <string>
#include <string_view>

namespace trainyard {

// 64 hexadecimal digits.
std::string sha256(std::string_view text);

}  // namespace trainyard
