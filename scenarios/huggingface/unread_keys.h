// For networks of unknown families: keys of the config that nobody has read. Keys whose names tell
// of layers that would be left out are refused; the others are reported, except those about
// training, tokens and files.
#pragma once

#include <string>
#include <vector>

#include "scenarios/huggingface/config.h"

namespace trainyard {

// What the keys that were read say about experts. `none`: that there are none.
enum class ExpertsRead { not_said, none, planned };

// Refuses the first unread key that tells of experts, recurrences, convolutions or cross attention.
void refuse_unread_layers(HuggingFaceConfig& config, ExpertsRead experts);

// The other unread keys that may say more about the network than is planned.
std::vector<std::string> keys_left_out(const HuggingFaceConfig& config);

}  // namespace trainyard
