// The words of a script's commands, with its variables and arrays put in. Of an `if` or `case` only
// the branch that the script's own variables choose is read; the body of a loop is read once, with
// its counter unknown. Nothing is run.
#pragma once

#include <string>
#include <vector>

#include "scenarios/interchange/shell/tokens.h"

namespace trainyard {

struct ShellWord {
  std::string text;
  std::size_t line = 1;
  bool begins_command = false;  // after `;`, `|`, `&&`, …
};

struct ShellCommands {
  std::vector<ShellWord> words;
  std::vector<std::string> assumptions;  // what was assumed where the file leaves something open
};
Expected<ShellCommands> commands_of(const ForeignFile& file);

}  // namespace trainyard
