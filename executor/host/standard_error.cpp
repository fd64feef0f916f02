#include "executor/host/standard_error.h"

#include <cstdio>

namespace trainyard {

void to_stderr(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

}  // namespace trainyard
