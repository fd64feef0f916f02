#include "scenarios/editing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "scenarios/fields/place.h"
#include "scenarios/form.h"
#include "scenarios/json/file.h"
#include "scenarios/json/json_document.h"
#include "scenarios/plan_value.h"

namespace trainyard {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Finds the values of a text, up to the first thing that is not JSON.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<ValuePlace> places() && {
    skip_blanks();
    value("", at_, 0);
    return std::move(places_);
  }

 private:
  bool value(const std::string& pointer, std::size_t key, std::size_t depth) {
    if (at_ >= text_.size() || depth > kDeepestNesting) return false;
    const std::size_t index = places_.size();
    places_.push_back({pointer, key, at_, text_.size()});
    const char first = text_[at_];
    const bool whole = first == '{'   ? members(pointer, depth)
                       : first == '[' ? elements(pointer, depth)
                       : first == '"' ? string()
                                      : word();
    places_[index].end = at_;
    return whole;
  }

  bool members(const std::string& pointer, std::size_t depth) {
    ++at_;
    while (next_unless('}')) {
      const std::size_t key = at_;
      if (!peek('"') || !string()) return false;
      const auto name = parse_json(text_.substr(key, at_ - key));
      skip_blanks();
      if (!name || !take(':')) return false;
      skip_blanks();
      const std::string at = pointer + pointer_step(name->get_ref<const std::string&>());
      if (!value(at, key, depth + 1) || !separated('}')) return false;
    }
    return take('}');
  }

  bool elements(const std::string& pointer, std::size_t depth) {
    ++at_;
    for (std::size_t i = 0; next_unless(']'); ++i) {
      if (!value(fmt::format("{}/{}", pointer, i), at_, depth + 1) || !separated(']')) return false;
    }
    return take(']');
  }

  bool string() {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return true;
      }
    }
    at_ = text_.size();
    return false;
  }

  bool word() {
    const std::size_t end = std::min(text_.find_first_of(",]}{[:\" \t\r\n", at_), text_.size());
    const bool any = end > at_;
    at_ = end;
    return any;
  }

  bool next_unless(char closing) {
    skip_blanks();
    return at_ < text_.size() && text_[at_] != closing;
  }
  // Takes a comma, or sees the end of the list.
  bool separated(char closing) {
    skip_blanks();
    return take(',') || peek(closing);
  }
  bool peek(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    const bool there = peek(c);
    at_ += there ? 1 : 0;
    return there;
  }
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size()); }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<ValuePlace> places_;
};

// The last place with this pointer, because of a repeated key the second one is the mistake.
const ValuePlace* find_place(const std::vector<ValuePlace>& places, std::string_view pointer) {
  const auto found = std::find_if(places.rbegin(), places.rend(), [&](const ValuePlace& place) {
    return place.pointer == pointer;
  });
  return found == places.rend() ? nullptr : &*found;
}

std::string_view parent_of(std::string_view pointer) {
  return pointer.substr(0, pointer.rfind('/'));
}

std::string key_of(std::string_view pointer) {
  std::string key;
  const std::string_view step = pointer.substr(pointer.rfind('/') + 1);
  for (std::size_t i = 0; i < step.size(); ++i) {
    const bool escaped = step[i] == '~' && i + 1 < step.size();
    key += !escaped ? step[i] : step[++i] == '0' ? '~' : '/';
  }
  return key;
}

bool is_member_of(const ValuePlace& place, const ValuePlace& parent) {
  return place.pointer.size() > parent.pointer.size() && parent_of(place.pointer) == parent.pointer;
}

// The blanks between the last comma, or the brace, and the key at `key`.
std::string_view blanks_before(std::string_view text, std::size_t key) {
  const std::size_t start = text.find_last_not_of(kBlanks, key - 1) + 1;
  return text.substr(start, key - start);
}

std::string inserted(std::string_view text, const std::vector<ValuePlace>& places,
                     const ValuePlace& parent, std::string_view pointer, std::string_view json) {
  const std::string member = fmt::format("{}: {}", Json(key_of(pointer)).dump(), json);
  const auto last = std::find_if(places.rbegin(), places.rend(), [&](const ValuePlace& place) {
    return is_member_of(place, parent);
  });
  if (last == places.rend()) {
    return fmt::format("{}{{ {} }}{}", text.substr(0, parent.begin), member,
                       text.substr(parent.end));
  }
  return fmt::format("{},{}{}{}", text.substr(0, last->end), blanks_before(text, last->key), member,
                     text.substr(last->end));
}

std::string without(std::string_view text, const ValuePlace& place) {
  std::size_t begin = place.key;
  std::size_t end = place.end;
  const std::size_t after = text.find_first_not_of(kBlanks, end);
  if (after != std::string_view::npos && text[after] == ',') {
    end = std::min(text.find_first_not_of(kBlanks, after + 1), text.size());
  } else {
    begin = text.find_last_not_of(kBlanks, begin - 1) + 1;
    if (begin > 0 && text[begin - 1] == ',') --begin;
  }
  return fmt::format("{}{}", text.substr(0, begin), text.substr(end));
}

int line_at(std::string_view text, std::size_t position) {
  return 1 + static_cast<int>(std::ranges::count(text.substr(0, position), '\n'));
}

// The line of a pointer, or of the nearest existing value around it.
int line_of_pointer(std::string_view text, std::string_view pointer) {
  const std::vector<ValuePlace> places = value_places(text);
  while (true) {
    if (const ValuePlace* place = find_place(places, pointer)) return line_at(text, place->key);
    if (pointer.empty()) return 1;
    pointer = parent_of(pointer);
  }
}

// The kind of a document by its tag, or "huggingface".
Expected<std::string> kind_at(const std::filesystem::path& file) {
  const auto text = read_file(file);
  if (!text) return failure(shown_path(file), text.error().message);
  if (const auto form = form_of(*text)) return form->kind;
  const auto json = parse_json(*text);
  if (!json) {
    const std::string& where = json.error().where;  // empty: the error is about the whole file
    return failure(
        where.empty() ? shown_path(file) : fmt::format("{}: {}", shown_path(file), where),
        json.error().message);
  }
  const bool config =
      json->is_object() && (json->contains("model_type") || json->contains("architectures"));
  if (config) return "huggingface";
  return failure(shown_path(file),
                 "found no \"trainyard\" and no Hugging Face config; allowed: one of them");
}

}  // namespace

std::vector<ValuePlace> value_places(std::string_view text) { return Scanner(text).places(); }

Expected<std::string> with_value(std::string_view text, std::string_view pointer,
                                 std::optional<std::string_view> json) {
  if (auto parsed = parse_json(text); !parsed) return tl::unexpected(parsed.error());
  const std::vector<ValuePlace> places = value_places(text);
  if (const ValuePlace* place = find_place(places, pointer)) {
    if (!json) return without(text, *place);
    return fmt::format("{}{}{}", text.substr(0, place->begin), *json, text.substr(place->end));
  }
  if (!json) return std::string(text);
  const std::string_view above = parent_of(pointer);
  const ValuePlace* parent = find_place(places, above);
  if (parent != nullptr && text[parent->begin] == '{') {
    return inserted(text, places, *parent, pointer, *json);
  }
  if (parent != nullptr || pointer.empty()) {
    return failure(std::string(above), "found no object; allowed: an object");
  }
  return with_value(text, above, fmt::format("{{ {}: {} }}", Json(key_of(pointer)).dump(), *json));
}

Expected<std::string> with_typed(std::string_view text, std::string_view pointer,
                                 std::string_view typed) {
  if (typed.find_first_not_of(kBlanks) == std::string_view::npos) {
    return with_value(text, pointer, std::nullopt);
  }
  const auto form = form_of(text);
  if (!form) return tl::unexpected(form.error());
  const auto row = std::ranges::find(form->rows, pointer, &FormRow::pointer);
  if (row == form->rows.end()) {
    return failure(std::string(pointer), "found no such key in this form");
  }
  return with_value(text, pointer, json_of_typed(*row, typed));
}

Expected<std::string> with_plan(std::string_view text, const Plan& plan) {
  std::string json = plan_value(plan).dump(2);
  for (std::size_t at = json.find('\n'); at != std::string::npos; at = json.find('\n', at + 1)) {
    json.insert(at + 1, "  ");  // aligns with the other keys of the document
  }
  return with_value(text, "/plan", json);
}

std::string text_without_plan(std::string_view text) {
  auto document = parse_json(text);
  if (!document || !document->is_object()) return std::string(text);
  document->erase("plan");
  document->erase("name");
  return document->dump();
}

Expected<std::string> with_document(std::string_view text, const std::filesystem::path& file,
                                    const std::filesystem::path& other) {
  const auto kind = kind_at(other);
  if (!kind) return tl::unexpected(kind.error());
  if (*kind == "scenario") return std::string();
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kPlaces = {
      {{"model", "/model"},
       {"huggingface", "/model"},
       {"node", "/cluster/node"},
       {"fabric", "/cluster/fabric"},
       {"stack", "/training/stack"}}};
  const auto* place = std::ranges::find(kPlaces, *kind, &decltype(kPlaces)::value_type::first);
  if (place == kPlaces.end()) {
    return failure(shown_path(other),
                   fmt::format("found a {}; allowed: a scenario, model, node, fabric or stack "
                               "document or a Hugging Face config",
                               *kind));
  }
  const auto folder = std::filesystem::absolute(file).parent_path();
  const std::string path = std::filesystem::proximate(std::filesystem::absolute(other), folder);
  // A name without a slash would be taken for one of the catalog.
  const Json reference = path.find('/') == std::string::npos ? "./" + path : path;
  const Json value =
      *kind == "huggingface" ? Json::object({{"huggingface", reference}}) : reference;
  return with_value(text, place->second, value.dump());
}

int line_of(std::string_view text, const std::filesystem::path& file, const Error& error) {
  std::string_view where = error.where;
  const std::string name = shown_path(file);
  if (where == name || where.empty()) return 1;
  if (where.starts_with(name + ": ")) where.remove_prefix(name.size() + 2);
  if (where.starts_with('/')) {
    return where.find(": ") == std::string_view::npos ? line_of_pointer(text, where) : 0;
  }
  constexpr std::string_view kLine = "line ";
  int line = 0;
  if (where.starts_with(kLine)) {
    std::from_chars(where.data() + kLine.size(), where.data() + where.size(), line);
  }
  return line;
}

}  // namespace trainyard
