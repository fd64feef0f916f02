// Tensors that lie outside the device, and the copies over the link to the host, which runs in both
// directions at once (ZeRO-Infinity, Rajbhandari et al. 2021). Activations leave after a layer's
// forward pass and come back before its backward pass. Weights come for every pass and are dropped
// after it. Gradients come, a micro-batch's gradient is added, and they go back. Internal to
// model/program.
#pragma once

#include <vector>

#include "model/program/parts/unit.h"

namespace trainyard {

// Whether the activations of layer `local_layer` of a stage leave the device: those of all layers
// or of the first few do.
bool sends_activations_away(const Plan& plan, int local_layer);

// The copies of what a layer keeps for backward: away after its forward pass, back before its
// backward pass. `stays`: a buffer that does not leave; −1: none.
struct ActivationCopies {
  Operation away, back;
};
ActivationCopies activation_copies(Lowering& lowering, const NetworkUnit& unit, int stays);

bool keeps_weights_away(const Lowering& lowering);
bool keeps_gradients_away(const Plan& plan);
// How many units ahead of their use weights and gradients are copied to the device: one; or two if
// what comes are parts, which are then gathered while the unit between runs (ZeRO-Infinity, §6.2).
int units_ahead(const Lowering& lowering);

// The copies of a unit's pass: its weights come, the gradients that it adds to come, and after the
// pass the sums go.
std::vector<Operation> weights_from_offload(const NetworkUnit& unit, Phase phase);
std::vector<Operation> gradients_from_offload(const NetworkUnit& unit,
                                              const std::vector<Phase>& phases);
std::vector<Operation> gradients_to_offload(const NetworkUnit& unit,
                                            const std::vector<Phase>& phases);
// The copies `coming`, made to wait: in beside_unit until the unit begins during which they run; in
// beside_pass, for the first units of a pass, until the pass before begins. Otherwise a copy would
// start as soon as its stream is free, and hold memory for longer.
std::vector<Operation> beside_unit(Lowering& lowering, std::vector<Operation> coming);
std::vector<Operation> beside_pass(Lowering& lowering, std::vector<Operation> coming);
// The operation on the compute stream that tells beside_pass() that a pass begins.
Operation pass_begins(Lowering& lowering);
// The same for activations of the first layer of a backward pass, which come back while the last
// layer of the backward pass before is at work.
std::vector<Operation> beside_last_layer(Lowering& lowering, std::vector<Operation> coming);
Operation last_layer_begins(Lowering& lowering);
// At the end of a step: `operations`, between copies that bring offloaded gradients and send them.
std::vector<Operation> with_gradients_here(const Lowering& lowering,
                                           const std::vector<Parameter>& parameters,
                                           std::vector<Operation> operations);

// The two buffers of a weight or a gradient: where a pass uses it, and where it lies between steps.
struct Places {
  int Parameter::*held;
  int Parameter::*stored;
};

// The transfers around the optimizer update, which runs where the optimizer states lie. If that is
// outside the device, the host updates: its inputs go there, its results come back, and the device
// waits for all of it (Megatron's hybrid optimizer without overlapped copies). On the device, this
// rank's parts of what lies outside come and go.
class UpdateCrossing {
 public:
  UpdateCrossing(Lowering& lowering, const std::vector<Parameter>& parameters);
  // The parameters with their held buffers at the place of the update.
  const std::vector<Parameter>& there() const { return there_; }
  // The copies of what the norm reads, of what else the update needs, and of updated weights back
  // to where they lie. After them gradients are clear.
  std::vector<Operation> for_norm() const;
  std::vector<Operation> for_update() const;
  std::vector<Operation> back() const;

 private:
  int place(int held, int stored, const Sharing& sharing);
  // `cuts`: of each two operands one is a whole and the other this rank's part of it.
  Operation crossing(bool experts, bool cuts) const;
  Operation to_update(bool experts, Places places) const;
  void append_gradients(std::vector<Operation>& list, bool clears) const;
  void append_weights(std::vector<Operation>& list) const;
  void append_return(std::vector<Operation>& list, bool experts) const;
  void append_spread(std::vector<Operation>& list, bool experts) const;

  Lowering& lowering_;
  std::vector<Parameter> parameters_, there_;
  bool on_host_, weights_away_, gradients_away_;
};

}  // namespace trainyard
