// docs/scenarios.md, generated from the tables of fields.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "scenarios/catalog.h"
#include "scenarios/fields/example.h"
#include "scenarios/fields/kinds.h"
#include "scenarios/schema.h"

namespace trainyard {
namespace {

constexpr std::string_view kIntroduction = R"(# Documents

*Generated from the tables in `scenarios/fields/`; a test fails if it is out of date (see the end).*

Every document is one JSON object that names its kind and version, `"trainyard": "scenario/1"`; a validation file is
a list of scenarios. Files are UTF-8 without a byte-order mark, at most 16 MiB, nested at most 64 levels deep.

Documents are checked when they are read. An unknown or duplicate key, a missing unit, a wrong type or an impossible
value gives exit status 2 and one line: the file, the JSON pointer, what was found and what is allowed.

**Quantities** are strings: a number, one space, a unit. Units are case-sensitive. GB is 10^9 bytes and GiB 2^30; `b`
is a bit. Counts and ratios are numbers.

{}
**References.** Instead of an object, a key may have a string: the name of a catalog entry, or the path to a document
of that kind. A path has a `/` or ends in `.json`; it is absolute or relative to the document. A reference must lead
to a regular file, and a chain of references must not lead back to itself. The catalog holds:

{}
A JSON Schema (draft 7) of every kind is in `scenarios/schema/`, and `trainyard schema KIND` prints it. The reader
also checks what a schema cannot express: duplicate keys, the range of a quantity, names of schedules and algorithms,
what a reference leads to, and rules across fields.

)";

constexpr std::string_view kEnding = R"(## Keeping this file and the schemas current

```
TRAINYARD_WRITE_GENERATED=1 ctest --preset release -R GeneratedFiles
```
)";

std::string type_of(const Shape& shape);

// Sections of `sources` only repeat the keys of another one, and are not described (sources_of,
// fields/shape.h).
bool is_of_sources(std::string_view section) { return section.ends_with("_sources"); }

std::string code(std::string_view text) { return fmt::format("`{}`", text); }

std::string form_type(const QuantityShape& shape) {
  return fmt::format("{}{}", record_of(shape.dimension).name,
                     shape.zero_allowed ? " (may be 0)" : "");
}
std::string form_type(const CountShape& shape) {
  return fmt::format("whole number, {} to {}", shape.least, shape.most);
}
std::string form_type(const NumberShape& shape) {
  return fmt::format("number, {}{} to {}", shape.least_allowed ? "" : "above ", shape.least,
                     shape.most);
}
std::string form_type(const FlagShape& /*shape*/) { return "true or false"; }
std::string form_type(const TextShape& shape) {
  return shape.pattern.empty() ? "text" : std::string(shape.pattern_means);
}
std::string form_type(const ChoiceShape& shape) {
  const std::string path =
      shape.document.empty() ? "" : fmt::format(" or path to a {} document", shape.document);
  if (!shape.family.empty()) return fmt::format("name of a {}{}", shape.family, path);
  return fmt::format("`{}`", fmt::join(shape.names, "` `"));
}
std::string form_type(const ReferenceShape& shape) {
  return fmt::format("reference to a {}", shape.kind);
}
std::string form_type(const PathShape& shape) { return fmt::format("path to {}", shape.what); }
std::string form_type(const ValueShape& /*shape*/) { return "any value of the key"; }
std::string form_type(const ObjectShape& shape) {
  const std::string& name = shape.section().name;
  if (is_of_sources(name)) return "object: a text for each of the other keys";
  return fmt::format("[{}](#{})", name, name);
}
std::string form_type(const ListShape& shape) {
  std::string length = shape.size > 0 ? fmt::format("{}", shape.size) : "";
  if (shape.most > shape.size) length += fmt::format(" to {}", shape.most);
  return fmt::format("list of {}{}{}", length, length.empty() ? "" : ": ",
                     type_of(shape.element.front()));
}
std::string form_type(const AnyShape& shape) {
  std::vector<std::string> types;
  for (const Shape& alternative : shape.alternatives) types.push_back(type_of(alternative));
  return fmt::format("{}", fmt::join(types, ", or "));
}

std::string type_of(const Shape& shape) {
  return std::visit([](const auto& form) { return form_type(form); }, shape.form);
}

std::string default_of(const FieldSpec& field) {
  if (field.required) return "**required**";
  if (!field.absent.empty()) return field.absent;
  return field.default_value ? code(field.default_value->dump()) : "none";
}

std::string table_of(const SectionSpec& section) {
  std::string text = fmt::format(
      "{}\n\n| key | value | default | example | meaning |\n|---|---|---|---|---|\n", section.doc);
  for (const FieldSpec& field : section.fields) {
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", field.key, type_of(field.shape),
                        default_of(field), code(example_of(section, field).dump()), field.doc);
  }
  return text + "\n";
}

std::string units_table() {
  std::string text = "| quantity | units | example |\n|---|---|---|\n";
  for (const Dimension dimension :
       {Dimension::bytes, Dimension::bytes_per_second, Dimension::seconds,
        Dimension::flops_per_second, Dimension::watts, Dimension::dollars_per_second,
        Dimension::carbon_intensity}) {
    const DimensionRecord& record = record_of(dimension);
    std::vector<std::string_view> units;
    for (const Unit& unit : record.units) units.push_back(unit.name);
    text += fmt::format("| {} | {} | `\"{}\"` |\n", record.name, fmt::join(units, ", "),
                        record.example);
  }
  return text;
}

std::string catalog_table() {
  std::string text = "| kind | names |\n|---|---|\n";
  for (const DocumentKind& kind : kinds()) {
    const std::vector<std::string> names = catalog_names(kind.name);
    if (!names.empty()) text += fmt::format("| {} | `{}` |\n", kind.name, fmt::join(names, "` `"));
  }
  return text;
}

// The kind of document under which each part is described: of those that lead to it, the one with
// the fewest parts.
std::map<const SectionSpec*, std::string_view> homes_of_parts() {
  std::vector<DocumentKind> order(kinds().begin(), kinds().end());
  std::ranges::stable_sort(
      order, {}, [](const DocumentKind& kind) { return parts_of(kind.section()).size(); });
  std::map<const SectionSpec*, std::string_view> homes;
  for (const DocumentKind& kind : order) {
    for (const SectionSpec* part : parts_of(kind.section())) {
      const bool is_kind = std::ranges::find(order, part->name, &DocumentKind::name) != order.end();
      if (!is_kind && !is_of_sources(part->name)) homes.emplace(part, kind.name);
    }
  }
  return homes;
}

}  // namespace

std::string documents_reference() {
  std::string text = fmt::format(fmt::runtime(kIntroduction), units_table(), catalog_table());
  const std::map<const SectionSpec*, std::string_view> homes = homes_of_parts();
  for (const DocumentKind& kind : kinds()) {
    text += fmt::format("## {}\n\n{}", kind.name, table_of(kind.section()));
    for (const SectionSpec* part : parts_of(kind.section())) {
      const auto home = homes.find(part);
      if (home == homes.end() || home->second != kind.name) continue;
      text += fmt::format("### {}\n\n{}", part->name, table_of(*part));
    }
  }
  return text + std::string(kEnding);
}

}  // namespace trainyard
