#include "scenarios/fields/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/catalog.h"
#include "scenarios/json/file.h"
#include "scenarios/json/nearest_name.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// The name of the file at `path` in errors, relative to the document's name.
std::string name_beside(const Document& document, const fs::path& path) {
  return shown_path((fs::path(document.name).parent_path() / path).lexically_normal());
}

// "a.json -> b.json -> a.json" when `file` is already open in the chain of referrers.
std::string cycle_through(const fs::path& file, const std::string& name, const Document* referrer) {
  std::string chain = name;
  for (const Document* open = referrer; open != nullptr; open = open->referrer) {
    chain = fmt::format("{} -> {}", open->name, chain);
    if (open->file == file) return chain;
  }
  return {};
}

fs::path canonical_path(const fs::path& file) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(file, error);
  return error ? file : path;
}

Expected<std::unique_ptr<OpenDocument>> parsed(std::string text, Document document) {
  auto value = parse_json(text);
  if (value) {
    return std::make_unique<OpenDocument>(
        OpenDocument{std::move(document), std::move(*value), std::move(text)});
  }
  const Error& error = value.error();
  return failure(
      error.where.empty() ? document.name : fmt::format("{}: {}", document.name, error.where),
      error.message);
}

// The allowed names, if one line has room for them.
std::string allowed_names(std::string_view kind, const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;
  if (names.size() > kMost) return fmt::format("the name of a {} in the catalog", kind);
  return fmt::format("\"{}\"", fmt::join(names, "\", \""));
}

}  // namespace

Expected<std::unique_ptr<OpenDocument>> open_file(const fs::path& file) {
  auto text = read_file(file);
  if (!text) return failure(shown_path(file), text.error().message);
  return parsed(*std::move(text), {shown_path(file), canonical_path(file), nullptr});
}

Expected<void> take_tag(Json& value, std::string_view kind, const Place& place) {
  const std::string tag = fmt::format("{}/1", kind);
  if (!value.is_object()) {
    return place.error(
        fmt::format("found {}; allowed: an object with \"trainyard\": \"{}\"", shown(value), tag));
  }
  const auto member = value.find("trainyard");
  if (member == value.end()) {
    return place.error(fmt::format("found no \"trainyard\"; allowed: \"{}\"", tag));
  }
  if (*member != tag) {
    return (place / "trainyard")
        .error(fmt::format("found {}; allowed: \"{}\"", shown(*member), tag));
  }
  value.erase(member);
  return {};
}

Expected<std::unique_ptr<OpenDocument>> open_written(std::string_view kind, const std::string& text,
                                                     const fs::path& file) {
  auto opened = parsed(text, {shown_path(file), canonical_path(file), nullptr});
  if (!opened) return opened;
  auto tagged = take_tag((*opened)->value, kind, (*opened)->root());
  if (!tagged) return tl::unexpected(tagged.error());
  return opened;
}

bool is_in_catalog(std::string_view kind, std::string_view name) {
  return find_in_catalog(kind, name) != nullptr;
}

// A file that cannot be read is an error of the referring document; an error inside the file is its
// own.
Expected<OpenText> open_text(const std::string& path, const Place& place) {
  fs::path file = canonical_path(place.document->folder() / path);
  std::string name = name_beside(*place.document, path);
  if (const std::string cycle = cycle_through(file, name, place.document); !cycle.empty()) {
    return place.error(fmt::format("found a cycle of references: {}; allowed: none", cycle));
  }
  auto content = read_file(file);
  if (!content) {
    return place.error(
        fmt::format("found {}, which {}", shown(std::string_view(path)), content.error().message));
  }
  return OpenText{{std::move(name), std::move(file), place.document}, *std::move(content)};
}

Expected<std::unique_ptr<OpenDocument>> open_path(const std::string& path, const Place& place) {
  auto opened = open_text(path, place);
  if (!opened) return tl::unexpected(opened.error());
  return parsed(std::move(opened->text), std::move(opened->document));
}

Expected<std::unique_ptr<OpenDocument>> open_reference(std::string_view kind,
                                                       const std::string& text,
                                                       const Place& place) {
  const CatalogEntry* entry = find_in_catalog(kind, text);
  if (entry == nullptr && !looks_like_a_path(text)) {
    const std::vector<std::string> names = catalog_names(kind);
    const std::string nearest = nearest_name(text, names);
    return place.error(
        fmt::format("found {}; allowed: {} or a path to a {}/1 document{}",
                    shown(std::string_view(text)), allowed_names(kind, names), kind,
                    nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest)));
  }
  auto opened = entry != nullptr
                    ? parsed(std::string(entry->text),
                             {fmt::format("catalog {} {}", kind, text), {}, place.document})
                    : open_path(text, place);
  if (!opened) return opened;
  auto tagged = take_tag((*opened)->value, kind, (*opened)->root());
  if (!tagged) return tl::unexpected(tagged.error());
  return opened;
}

}  // namespace trainyard
