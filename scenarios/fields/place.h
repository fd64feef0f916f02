// The place of a value: which document, and where in it. Used for the one line of an error, for
// paths relative to the document, and to find cycles of references.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "model/expected.h"

namespace trainyard {

// A document that is being read. Catalog documents have a name but no file.
struct Document {
  std::string name;            // as an error line shows it
  std::filesystem::path file;  // canonical; empty for a catalog document
  const Document* referrer = nullptr;

  std::filesystem::path folder() const { return file.parent_path(); }
};

// A path as an error line shows it: one line, valid UTF-8.
std::string shown_path(const std::filesystem::path& path);

struct Place {
  const Document* document = nullptr;
  std::string pointer;  // JSON pointer

  Place operator/(std::string_view key) const;
  Place operator/(std::size_t index) const;
  tl::unexpected<Error> error(std::string message) const;
};

}  // namespace trainyard
