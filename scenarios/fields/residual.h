// A smooth correction of a closed form (model/residual_grid.h) as a part of a document. Without a
// correction the key is absent.
#pragma once

#include <string>
#include <utility>

#include "model/residual_grid.h"
#include "scenarios/fields/section.h"

namespace trainyard {

const Section<ResidualGrid>& residual_section();

// `axes`: what the coordinates mean, in words.
template <typename T>
Field<T> residual(std::string_view key, ResidualGrid T::*member, const std::string& axes) {
  return {{.key = std::string(key),
           .shape = {ObjectShape{&spec_of<residual_section>, {}}},
           .doc = "correction of the fitted formula, over " + axes,
           .absent = "the formula alone"},
          [member](const Json& value, T& owner, const Place& place) {
            return residual_section().read(value, owner.*member, place);
          },
          [member](const T& owner) -> std::optional<Json> {
            if ((owner.*member).empty()) return std::nullopt;
            return residual_section().write(owner.*member);
          }};
}

}  // namespace trainyard
