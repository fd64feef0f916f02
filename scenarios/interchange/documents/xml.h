// XML as pugixml reads it, with limits: at most 200,000 elements nested at most 64 deep, and no
// document type declaration, so that no entity is ever expanded.
#pragma once

#include <memory>
#include <pugixml.hpp>

#include "model/expected.h"
#include "scenarios/interchange/documents/foreign_file.h"

namespace trainyard {

// Errors name the line.
Expected<std::unique_ptr<pugi::xml_document>> parse_xml(const ForeignFile& file);

tl::unexpected<Error> error_at(const ForeignFile& file, pugi::xml_node node, std::string message);

}  // namespace trainyard
