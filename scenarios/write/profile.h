// A profile as a document: profile/1, which reads back to the same value.
#pragma once

#include <filesystem>
#include <string>

#include "model/expected.h"
#include "model/program/profile.h"

namespace trainyard {

std::string profile_document(const Profile& profile);

// Whether the file is a document that says to be a profile.
bool is_profile(const std::filesystem::path& file);
Expected<Profile> read_profile(const std::filesystem::path& file);

}  // namespace trainyard
