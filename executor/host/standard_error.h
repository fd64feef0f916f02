// Text on stderr that never throws.
#pragma once

#include <string_view>

namespace trainyard {

// If stderr is closed, its reader is gone or its disk is full, the text is lost without an error:
// nobody is left to tell, and the exit status says the rest. fmt::print would throw.
void to_stderr(std::string_view text);

}  // namespace trainyard
