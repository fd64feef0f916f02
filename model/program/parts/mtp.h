// What an MTP layer has in front of its transformer layer: norms of the hidden state and of the
// embedding, and a projection of both.
#pragma once

#include "model/program/parts/parts.h"

namespace trainyard {

struct MtpInput {
  NormPart embedding_norm, state_norm;
  LinearPart projection;
  int saved = -1;  // the input that the projection keeps
  int output = -1, output_gradient = -1;
};
MtpInput append_mtp_input(NetworkUnit& unit);
// Adds the state's gradient to the one that the head made for the same state.
void append_mtp_input_gradient(NetworkUnit& unit, const MtpInput& input);

}  // namespace trainyard
