// What an MTP layer has before the layer of the network that it is. Internal to model/program.
#pragma once

#include "model/program/parts/parts.h"

namespace trainyard {

struct MtpInput {
  NormPart embedding_norm, state_norm;
  LinearPart projection;
  int saved = -1;  // what the projection keeps of its input
  int output = -1, output_gradient = -1;
};
MtpInput append_mtp_input(NetworkUnit& unit);
// Adds the state's gradient to what the head has for it.
void append_mtp_input_gradient(NetworkUnit& unit, const MtpInput& input);

}  // namespace trainyard
