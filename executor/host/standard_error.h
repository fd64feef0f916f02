// Lines on stderr.
#pragma once

#include <string_view>

namespace trainyard {

// Where stderr is closed, its reader gone or its disk full the text is lost: nobody is left to
// tell, and the status says the rest. fmt::print would throw.
void to_stderr(std::string_view text);

}  // namespace trainyard
