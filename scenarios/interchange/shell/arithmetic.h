// The value of what stands in `$(( … ))`: whole numbers of 64 bits, the operators of C but for
// assignments, shifts and bits. Names are variables.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace trainyard {

// The text of a variable; nullopt: it is not known.
using ShellLookup = std::function<std::optional<std::string_view>(std::string_view name)>;

// nullopt: not an expression of these, an unknown variable, or a value that does not fit.
std::optional<std::int64_t> shell_number(std::string_view expression, const ShellLookup& lookup);

}  // namespace trainyard
