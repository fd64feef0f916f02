// One reader under libFuzzer.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  trainyard::TRAINYARD_READER(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
