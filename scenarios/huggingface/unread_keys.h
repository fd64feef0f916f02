// Of a network whose family is not known: what its config says and nobody has read. Some keys tell
// by their names of layers that would be left out; the rest is named, but for what is of training,
// tokens and files.
#pragma once

#include <string>
#include <vector>

#include "scenarios/huggingface/config.h"

namespace trainyard {

// What the keys that are read said of experts. `none`: that there are none.
enum class ExpertsRead { not_said, none, planned };

// Refuses the first unread key that tells of experts, recurrences, convolutions or cross attention.
void refuse_unread_layers(HuggingFaceConfig& config, ExpertsRead experts);

// The other unread keys that may say more of the network than is planned.
std::vector<std::string> keys_left_out(const HuggingFaceConfig& config);

}  // namespace trainyard
