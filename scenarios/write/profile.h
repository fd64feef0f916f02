// Reads and writes profiles as profile/1 documents.
#pragma once

#include <filesystem>
#include <string>

#include "model/expected.h"
#include "model/program/profile.h"

namespace trainyard {

std::string profile_document(const Profile& profile);

// Whether the file is a document with the tag of a profile.
bool is_profile(const std::filesystem::path& file);
Expected<Profile> read_profile(const std::filesystem::path& file);

}  // namespace trainyard
