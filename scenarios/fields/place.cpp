#include "scenarios/fields/place.h"

#include <fmt/format.h>

#include "scenarios/json/json_document.h"

namespace trainyard {

std::string shown_path(const std::filesystem::path& path) {
  const std::string dumped = json_line(Json(path.string()));
  return dumped.substr(1, dumped.size() - 2);
}

Place Place::operator/(std::string_view key) const {
  return {document, pointer + pointer_step(key)};
}

Place Place::operator/(std::size_t index) const {
  return {document, fmt::format("{}/{}", pointer, index)};
}

tl::unexpected<Error> Place::error(std::string message) const {
  return failure(pointer.empty() ? document->name : fmt::format("{}: {}", document->name, pointer),
                 std::move(message));
}

}  // namespace trainyard
