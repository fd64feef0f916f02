// The known name that a misspelt one was probably meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trainyard {

// Optimal string alignment distance (insert, delete, replace, swap neighbours).
int edit_distance(std::string_view a, std::string_view b);

// The first known name that begins with `name`, else the nearest by edit_distance. Empty if none is
// near: at most a third of the name's letters, but at least two, may differ.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

}  // namespace trainyard
