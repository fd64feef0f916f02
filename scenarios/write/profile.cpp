#include "scenarios/write/profile.h"

#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

std::string profile_document(const Profile& profile) {
  Json json = {{"trainyard", "profile/1"}};
  json.update(profile_section().write(profile));
  return text_of(json);
}

bool is_profile(const std::filesystem::path& file) {
  const auto opened = open_file(file);
  if (!opened || !(*opened)->value.is_object()) return false;
  const auto tag = (*opened)->value.find("trainyard");
  return tag != (*opened)->value.end() && tag->is_string() &&
         tag->get_ref<const std::string&>().starts_with("profile/");
}

Expected<Profile> read_profile(const std::filesystem::path& file) {
  auto opened = open_file(file);
  if (!opened) return tl::unexpected(opened.error());
  const Place place = (*opened)->root();
  Json value = std::move((*opened)->value);
  Profile profile;
  const auto read = take_tag(value, "profile", place)
                        .and_then([&] { return check(profile_section().spec(), value, place); })
                        .and_then([&] { return profile_section().read(value, profile, place); });
  return read ? Expected<Profile>(std::move(profile)) : tl::unexpected(read.error());
}

}  // namespace trainyard
