// What lies outside the device: copies over the link to the host, both directions at once
// (ZeRO-Infinity, Rajbhandari et al. 2021). Internal to model/program.
#pragma once

#include <vector>

#include "model/program/parts/unit.h"

namespace trainyard {

// Whether the activations of layer `local_layer` of a stage leave the device: those of all layers,
// or of the first few.
bool sends_activations_away(const Plan& plan, int local_layer);

// What a layer keeps for backward: away when its forward pass has ended, back before its backward
// pass. The stream waits for both with `awaited`, a buffer that is there when all have gone.
struct ActivationCopies {
  Operation away, back;
  int awaited = -1;
};
ActivationCopies activation_copies(Lowering& lowering, const NetworkUnit& unit);
// On the compute stream, until `buffer` is written.
Operation await(int buffer);

// Where the optimizer's states lie outside the device the host updates them: the gradients go
// there, the weights come back; the device waits for all of it. (Megatron's hybrid optimizer
// without overlapped copies.)
bool updates_on_host(const Plan& plan);
// The parameters as the host's update finds them: gradients and weights of this rank's part.
std::vector<Parameter> on_host(Lowering& lowering, const std::vector<Parameter>& parameters);
// Gradients to the host; the device's are clear then.
std::vector<Operation> gradients_to_host(const Lowering& lowering,
                                         const std::vector<Parameter>& parameters,
                                         const std::vector<Parameter>& host);
// Updated weights to the device.
std::vector<Operation> weights_from_host(const Lowering& lowering,
                                         const std::vector<Parameter>& parameters,
                                         const std::vector<Parameter>& host);

}  // namespace trainyard
