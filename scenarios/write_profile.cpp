#include "scenarios/write_profile.h"

#include "scenarios/fields/documents.h"
#include "scenarios/json_document.h"

namespace trainyard {

std::string profile_document(const Profile& profile) {
  Json json = {{"trainyard", "profile/1"}};
  json.update(profile_section().write(profile));
  return text_of(json);
}

}  // namespace trainyard
