// Options on a command line, as a file holds them: one command, a script that assembles it
// (scenarios/interchange/shell/script.h), or a bare list.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/interchange/options.h"

namespace trainyard {

// Reads `--num-layers 32` as option `num_layers` and `--a=b` as `a`. Errors name the line.
Expected<Options> parse_command_line(const ForeignFile& file);

// The text quoted as one word of a POSIX shell, whatever it contains.
std::string shell_quoted(std::string_view text);

}  // namespace trainyard
