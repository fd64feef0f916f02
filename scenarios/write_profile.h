// A profile as a document: profile/1, which reads back to the same value.
#pragma once

#include <string>

#include "model/program/profile.h"

namespace trainyard {

std::string profile_document(const Profile& profile);

}  // namespace trainyard
