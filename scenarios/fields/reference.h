// References between documents: where an object may stand, a string is the name of a catalog entry
// or a path, absolute or relative to the document. A cycle of references is an error that names its
// chain.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "scenarios/fields/section.h"

namespace trainyard {

// A document whose tag was checked and taken off. It does not move once opened, because places
// point at it.
struct OpenDocument {
  Document document;
  Json value;
  std::string text;  // as it was read, since the file may change

  Place root() const { return {&document, ""}; }
};

// Opens the first document of a chain of references; its tag is still on.
Expected<std::unique_ptr<OpenDocument>> open_file(const std::filesystem::path& file);

// Takes the tag `"trainyard": "<kind>/1"` off an object; fails if it is not there.
Expected<void> take_tag(Json& value, std::string_view kind, const Place& place);

// The text of the file at `path`, absolute or relative to the document of `place`, and the document
// that it is.
struct OpenText {
  Document document;
  std::string text;
};
Expected<OpenText> open_text(const std::string& path, const Place& place);

// Opens a JSON file of another format.
Expected<std::unique_ptr<OpenDocument>> open_path(const std::string& path, const Place& place);

// Opens the document that `text` refers to. Requires: `text` passed the check of a ReferenceShape
// of that kind.
Expected<std::unique_ptr<OpenDocument>> open_reference(std::string_view kind,
                                                       const std::string& text, const Place& place);

// A document of that kind that is to be written to `file`, opened from its text.
Expected<std::unique_ptr<OpenDocument>> open_written(std::string_view kind, const std::string& text,
                                                     const std::filesystem::path& file);

bool is_in_catalog(std::string_view kind, std::string_view name);

namespace detail {

template <typename S>
Expected<void> read_document(const Section<S>& section, const std::string& text, S& target,
                             const Place& place) {
  const auto opened = open_reference(section.spec().name, text, place);
  if (!opened) return tl::unexpected(opened.error());
  const OpenDocument& document = **opened;
  if (auto fits = check(section.spec(), document.value, document.root()); !fits) return fits;
  return section.read(document.value, target, document.root());
}

// Reads a catalog document once and keeps the value, because the catalog never changes; that lets a
// sweep read a scenario for every point. Requires: is_in_catalog.
template <typename S>
Expected<S> from_catalog(const Section<S>& section, const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, S, std::less<>> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  static const Document kProgram{.name = "catalog"};
  S value;
  if (auto done = read_document(section, name, value, {&kProgram, ""}); !done) {
    return tl::unexpected(done.error());
  }
  return known.emplace(name, std::move(value)).first->second;
}

}  // namespace detail

// Reads a value of a section, from a reference or from the object itself.
template <typename S>
Expected<void> read_reference(const Section<S>& section, const Json& value, S& target,
                              const Place& place) {
  if (value.is_object()) return section.read(value, target, place);
  const auto& text = value.get_ref<const std::string&>();
  if (is_in_catalog(section.spec().name, text)) {
    auto known = detail::from_catalog(section, text);
    if (known) target = std::move(*known);
    return known ? Expected<void>{} : tl::unexpected(known.error());
  }
  return detail::read_document(section, text, target, place);
}

// A document that was named on the command line.
template <typename S>
struct NamedDocument {
  S content;         // its name is the reference if it has none
  Json value;        // as written, without its tag
  std::string file;  // as errors name it
};

// Reads a document by its catalog name or a path relative to the working folder. `asker` is the
// option that gave `reference` ("--device"); errors name it.
template <typename S>
Expected<NamedDocument<S>> read_named(const Section<S>& section, const std::string& reference,
                                      std::string_view asker) {
  const Document command_line{std::string(asker), std::filesystem::current_path() / "-", nullptr};
  auto opened = open_reference(section.spec().name, reference, {&command_line, ""});
  if (!opened) return tl::unexpected(std::move(opened.error()));
  OpenDocument& document = **opened;
  NamedDocument<S> named;
  auto done = check(section.spec(), document.value, document.root());
  if (done) done = section.read(document.value, named.content, document.root());
  if (!done) return tl::unexpected(std::move(done.error()));
  if (named.content.name.empty()) named.content.name = reference;
  named.value = std::move(document.value);
  named.file = document.document.name;
  return named;
}

// Checks that `text`, which is to be written to `file`, reads as a document of `section`.
template <typename S>
Expected<void> check_written(const Section<S>& section, const std::string& text,
                             const std::filesystem::path& file) {
  const auto opened = open_written(section.spec().name, text, file);
  if (!opened) return tl::unexpected(opened.error());
  const OpenDocument& document = **opened;
  S value;
  auto done = check(section.spec(), document.value, document.root());
  if (done) done = section.read(document.value, value, document.root());
  if (done) return {};
  return failure(done.error().where, done.error().message + "; nothing was written");
}

// A field that holds an object of `section` or refers to a document of that kind.
template <auto section, typename T, typename S>
Field<T> reference(std::string_view key, S T::*member, std::string_view doc) {
  const SectionSpec& spec = section().spec();
  return {{.key = std::string(key),
           .shape = {AnyShape{
               {Shape{ReferenceShape{spec.name}}, Shape{ObjectShape{&spec_of<section>, {}}}}}},
           .doc = std::string(doc)},
          [member](const Json& value, T& owner, const Place& place) {
            return read_reference(section(), value, owner.*member, place);
          },
          [member](const T& owner) -> std::optional<Json> {
            Json written = section().write(owner.*member);
            return (owner.*member).name.empty() ? std::nullopt
                                                : std::optional<Json>(std::move(written));
          }};
}

}  // namespace trainyard
