// Whether the condition of a script holds, as far as its own variables decide it: comparisons in
// brackets and arithmetic, with `!`, `&&` and `||`. What it asks of the machine (files, commands)
// is taken as no.
#pragma once

#include <span>

#include "scenarios/interchange/shell/tokens.h"

namespace trainyard {

struct ShellCondition {
  bool holds = false;
  bool decided = true;  // false: it asks something of the machine
};
ShellCondition shell_condition(std::span<const ShellToken> tokens);

}  // namespace trainyard
