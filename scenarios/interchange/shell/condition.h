// Whether a condition of a script holds, as far as the script's own variables decide it:
// comparisons in brackets and arithmetic, with `!`, `&&` and `||`. A question about the machine
// (files, commands) is answered with no.
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
