#include "scenarios/interchange/documents/xml.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/json/json_document.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMostElements = 200'000;

// Finds the first node that exceeds the limits.
class XmlLimits : public pugi::xml_tree_walker {
 public:
  bool for_each(pugi::xml_node& node) override {
    const bool deep = depth() >= static_cast<int>(kDeepestNesting);
    if (!deep && node.type() != pugi::node_doctype) return true;
    offender = node;
    what = deep ? fmt::format("nested deeper than {} levels", kDeepestNesting)
                : "found a document type declaration; allowed: none, entities are not expanded";
    return false;
  }

  pugi::xml_node offender;
  std::string what;
};

}  // namespace

tl::unexpected<Error> error_at(const ForeignFile& file, pugi::xml_node node, std::string message) {
  return file.error_at(static_cast<std::size_t>(std::max(node.offset_debug(), std::ptrdiff_t{0})),
                       std::move(message));
}

Expected<std::unique_ptr<pugi::xml_document>> parse_xml(const ForeignFile& file) {
  const auto elements = std::ranges::count(file.text, '<');  // at least as many as nodes
  if (elements > 2 * kMostElements) {
    return file.error(
        fmt::format("found about {} elements; allowed: at most {}", elements / 2, kMostElements));
  }
  auto document = std::make_unique<pugi::xml_document>();
  const pugi::xml_parse_result parsed =
      document->load_buffer(file.text.data(), file.text.size(),
                            pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  if (!parsed) {
    return file.error_at(static_cast<std::size_t>(parsed.offset),
                         fmt::format("found text that is not XML ({})", parsed.description()));
  }
  XmlLimits limits;
  document->traverse(limits);
  if (!limits.what.empty()) return error_at(file, limits.offender, limits.what);
  return document;
}

}  // namespace trainyard
