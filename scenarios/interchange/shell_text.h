// Options on a command line, as a file holds them: one command, a script that assembles it from
// variables and arrays, or a bare list. Nothing is run: quotes, comments, continued lines and
// variables that the file itself sets are resolved, any other expansion stays as it is written.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/interchange/options.h"

namespace trainyard {

// `--num-layers 32` as option `num_layers` and `--a=b` as `a`. Errors name the line.
Expected<Options> parse_command_line(const ForeignFile& file);

// Text as one word of a POSIX shell, whatever is in it.
std::string shell_quoted(std::string_view text);

}  // namespace trainyard
