// Evaluates the expression of `$(( … ))`: whole numbers of 64 bits and the operators of C, except
// assignments, shifts and bit operations. Names are variables.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace trainyard {

// The text of a variable; nullopt: it is not known.
using ShellLookup = std::function<std::optional<std::string_view>(std::string_view name)>;

// The value; nullopt: another kind of expression, an unknown variable, or a value that does not
// fit.
std::optional<std::int64_t> shell_number(std::string_view expression, const ShellLookup& lookup);

}  // namespace trainyard
