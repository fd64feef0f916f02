// The shape of a value: what it may look like in a document. One description serves `check` (and
// its errors), the JSON Schema, the documentation and the forms of the desktop program
// (scenarios/form.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/expected.h"
#include "scenarios/fields/place.h"
#include "scenarios/json/json_document.h"
#include "scenarios/json/quantity.h"

namespace trainyard {

struct SectionSpec;
struct Shape;

struct QuantityShape {
  Dimension dimension;
  bool zero_allowed = false;
};
struct CountShape {  // a whole number
  double least = 1, most = 1e6;
};
struct NumberShape {
  double least = 0, most = 1;
  bool least_allowed = true;  // false: greater than `least`
};
inline constexpr NumberShape kPart{.least = 0, .most = 1};  // of a whole
struct FlagShape {};
struct TextShape {                 // one line
  std::string_view pattern;        // regular expression (ECMA-262); empty: any text
  std::string_view pattern_means;  // the pattern in words
};
struct ChoiceShape {
  std::vector<std::string> names;
  // What the names are, if they are a family that grows by a file each: schema and documentation
  // then do not list the names, so that adding one changes neither.
  std::string_view family;
  // The kind of document to which a path may stand instead of a name; empty: no path is allowed.
  std::string_view document;
};
struct ReferenceShape {   // the name of a catalog entry, or a path
  std::string_view kind;  // kind of the document it leads to
};
struct PathShape {  // a path to a file of another format
  std::string_view what;
};
struct ValueShape {};  // any value; a key of another document says what is allowed
struct ObjectShape {
  const SectionSpec& (*section)();
  std::string_view marker;  // among alternatives: the key that only this one has
};
struct ListShape {
  std::vector<Shape> element;  // exactly one; a vector because Shape is not complete here
  std::size_t size = 0;        // 0: one entry or more
  std::size_t most = 0;        // if above `size`: from `size` to `most` entries
};
struct AnyShape {  // told apart by the value's type and by markers, never by trial
  std::vector<Shape> alternatives;
};

struct Shape {
  std::variant<QuantityShape, CountShape, NumberShape, FlagShape, TextShape, ChoiceShape,
               ReferenceShape, PathShape, ValueShape, ObjectShape, ListShape, AnyShape>
      form;
};

// One key of a section.
struct FieldSpec {
  std::string key;
  Shape shape;
  std::string doc;
  bool required = false;
  std::string absent;  // what absence of the key means; empty: `default_value`
  std::optional<Json> default_value;
};

struct SectionSpec {
  std::string name;
  std::string doc;
  std::vector<FieldSpec> fields;
  // For a document that may stand inside another one: the value of "trainyard" that it may have
  // there.
  std::string tag;
};

// The section of an object that has a line of text for some keys of `section`.
SectionSpec sources_of(const SectionSpec& section);

// Checks that `value` has the shape; the error names the place, what was found and what is allowed.
Expected<void> check(const Shape& shape, const Json& value, const Place& place);
Expected<void> check(const SectionSpec& section, const Json& value, const Place& place);

// Whether a text is a path and not a name: it has a slash or ends in .json.
bool looks_like_a_path(std::string_view text);

// What is allowed, in words: "a whole number from 1 to 100".
std::string allowed(const Shape& shape);

// Calls `visit` with every reference and path (a string) in `value`. `kind` is the kind of document
// that it refers to; empty for a file of another format. Requires: `value` passed `check`.
void visit_references(const SectionSpec& section, Json& value,
                      const std::function<void(std::string_view kind, Json& text)>& visit);

}  // namespace trainyard
