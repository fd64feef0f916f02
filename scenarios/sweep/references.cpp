#include "scenarios/sweep/references.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "scenarios/catalog.h"
#include "scenarios/fields/kinds.h"
#include "scenarios/fields/reference.h"
#include "scenarios/json/file.h"
#include "scenarios/sweep/sha256.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

const SectionSpec& section_of(std::string_view kind) {
  return std::ranges::find(kinds(), kind, &DocumentKind::name)->section();
}

std::string absolute_path(const std::string& path, const Place& place) {
  std::error_code ignored;
  return fs::weakly_canonical(place.document->folder() / path, ignored).string();
}

// Makes absolute the paths to files that cannot be copied into the document.
bool stays_a_path(std::string_view kind) { return kind.empty() || kind == "passes"; }

class Collector {
 public:
  explicit Collector(std::vector<SweepInput>& inputs) : inputs_(inputs) {}

  void visit(const SectionSpec& section, Json value, const Place& place) {
    visit_references(section, value, [&](std::string_view kind, Json& text) {
      add(kind, text.get<std::string>(), place);
    });
  }

 private:
  void add(std::string_view kind, const std::string& text, const Place& place) {
    if (stays_a_path(kind)) {
      const std::string path = absolute_path(text, place);
      if (const auto content = read_file(path)) is_new({path, sha256(*content)});
      return;
    }
    const auto opened = open_reference(kind, text, place);
    if (!opened) return;
    const auto& [document, value, content] = **opened;
    const std::string name = document.file.empty() ? document.name : document.file.string();
    if (!is_new({name, sha256(content)})) return;
    const SectionSpec& section = section_of(kind);
    if (check(section, value, (*opened)->root())) visit(section, value, (*opened)->root());
  }

  bool is_new(SweepInput input) {
    if (std::ranges::find(inputs_, input) != inputs_.end()) return false;
    inputs_.push_back(std::move(input));
    return true;
  }

  std::vector<SweepInput>& inputs_;
};

}  // namespace

Expected<Json> resolved_document(std::string_view kind, const std::string& text,
                                 const Place& place) {
  auto opened = open_reference(kind, text, place);
  if (!opened) return tl::unexpected(opened.error());
  Json value = (*opened)->value;
  const SectionSpec& section = section_of(kind);
  if (auto fits = check(section, value, (*opened)->root()); !fits) {
    return tl::unexpected(fits.error());
  }
  auto done = resolve_references(section, value, (*opened)->root());
  return done ? Expected<Json>(std::move(value)) : tl::unexpected(done.error());
}

Expected<void> resolve_references(const SectionSpec& section, Json& value, const Place& place) {
  Expected<void> result;
  visit_references(section, value, [&](std::string_view kind, Json& text) {
    const auto name = text.get<std::string>();
    if (!result || (!kind.empty() && find_in_catalog(kind, name) != nullptr)) return;
    if (stays_a_path(kind)) {
      text = absolute_path(name, place);
      return;
    }
    auto document = resolved_document(kind, name, place);
    if (document) {
      text = std::move(*document);
    } else {
      result = tl::unexpected(document.error());
    }
  });
  return result;
}

void collect_inputs(const SectionSpec& section, const Json& value, const Place& place,
                    std::vector<SweepInput>& inputs) {
  Collector(inputs).visit(section, value, place);
}

std::string kind_of_reference(const SectionSpec& section, Json& value, const Json* node) {
  std::string found;
  visit_references(section, value, [&](std::string_view kind, Json& text) {
    if (&text == node) found = kind;
  });
  return found;
}

}  // namespace trainyard
