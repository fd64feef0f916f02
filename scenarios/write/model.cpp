#include "scenarios/write/model.h"

#include "scenarios/fields/documents.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

std::string model_document(const Transformer& model, std::string_view source) {
  Json json = {{"trainyard", "model/1"}, {"name", model.name}, {"source", std::string(source)}};
  json.update(model_section().write(model, Keys::said));
  return text_of(json);
}

}  // namespace trainyard
