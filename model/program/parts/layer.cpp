// One layer: the attention half and the MLP half, which has experts where the layer is of that
// kind. Before them, of an MTP layer, what makes one stream of two.
#include "model/program/parts/experts.h"
#include "model/program/parts/mlp.h"
#include "model/program/parts/mtp.h"
#include "model/program/parts/parts.h"

namespace trainyard {

void add_layer(NetworkUnit& unit, LayerKind kind, Repeats repeats) {
  const LayerMiddle middle{unit.local_activation("middle"),
                           unit.local_activation("middle gradient")};
  LayerInput input{reads(unit.lowering().hidden), reads(unit.lowering().gradient)};
  MtpInput mtp;
  if (kind.mtp) {
    mtp = append_mtp_input(unit);
    input = {reads(mtp.output), reads(mtp.output_gradient)};
  }
  const AttentionHalf attention = append_attention(unit, kind, input, middle);
  DenseMlp mlp;
  ExpertHalf experts;
  if (kind.moe) {
    experts = append_experts(unit, middle);
  } else {
    mlp = append_mlp(unit, middle);
  }
  if (repeats == Repeats::everything) unit.repeat_forward();
  if (repeats == Repeats::every_second_matmul) unit.repeat_every_second_matmul();
  if (kind.moe) {
    append_experts_gradient(unit, experts);
  } else {
    append_mlp_gradient(unit, mlp);
  }
  append_attention_gradient(unit, attention, repeats == Repeats::attention_core);
  if (kind.mtp) append_mtp_input_gradient(unit, mtp);
}

}  // namespace trainyard
