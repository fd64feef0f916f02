#include "scenarios/fields/kinds.h"

#include <algorithm>
#include <array>

#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

void collect(const SectionSpec& section, std::vector<const SectionSpec*>& parts);

void collect(const Shape& shape, std::vector<const SectionSpec*>& parts) {
  if (const auto* object = std::get_if<ObjectShape>(&shape.form)) {
    const SectionSpec& part = object->section();
    if (std::ranges::find(parts, &part) != parts.end()) return;
    parts.push_back(&part);
    collect(part, parts);
  } else if (const auto* list = std::get_if<ListShape>(&shape.form)) {
    collect(list->element.front(), parts);
  } else if (const auto* any = std::get_if<AnyShape>(&shape.form)) {
    for (const Shape& alternative : any->alternatives) collect(alternative, parts);
  }
}

void collect(const SectionSpec& section, std::vector<const SectionSpec*>& parts) {
  for (const FieldSpec& field : section.fields) collect(field.shape, parts);
}

}  // namespace

std::span<const DocumentKind> kinds() {
  static constexpr std::array<DocumentKind, 9> kKinds = {{
      {"scenario", &spec_of<scenario_section>},
      {"model", &spec_of<model_section>},
      {"device", &spec_of<device_section>},
      {"node", &spec_of<node_section>},
      {"fabric", &spec_of<fabric_section>},
      {"stack", &spec_of<stack_section>},
      {"passes", &spec_of<passes_section>},
      {"profile", &spec_of<profile_section>},
      {"sweep", &spec_of<sweep_section>},
  }};
  return kKinds;
}

std::vector<const SectionSpec*> parts_of(const SectionSpec& section) {
  std::vector<const SectionSpec*> parts;
  collect(section, parts);
  return parts;
}

}  // namespace trainyard
