// The text that `trainyard run` prints.
#pragma once

#include <string>

#include "cli/text/layout/style.h"
#include "model/program/profile.h"

namespace trainyard {

std::string run_report(const Profile& profile, const Style& style);

}  // namespace trainyard
