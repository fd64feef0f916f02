// The words that a script's commands are made of, its variables and arrays put in, and of its `if`
// and `case` the branches that its own variables choose. Loops are gone through once, with nothing
// known of what they count. Nothing is run.
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
  std::vector<std::string> assumptions;  // what was taken for granted
};
Expected<ShellCommands> commands_of(const ForeignFile& file);

}  // namespace trainyard
