// What lies outside the device: copies over the link to the host, both directions at once
// (ZeRO-Infinity, Rajbhandari et al. 2021). Activations go behind a layer's forward pass and come
// back before its backward pass. Weights come for every pass and are forgotten behind it. Gradients
// come, what a micro-batch adds is added, and they go. Internal to model/program.
#pragma once

#include <vector>

#include "model/program/parts/unit.h"

namespace trainyard {

// Whether the activations of layer `local_layer` of a stage leave the device: those of all layers,
// or of the first few.
bool sends_activations_away(const Plan& plan, int local_layer);

// What a layer keeps for backward: away when its forward pass has ended, back before its backward
// pass. The stream waits for both with `awaited`, a buffer that is there when all have gone.
// `stays`: a buffer that does not leave; −1: none.
struct ActivationCopies {
  Operation away, back;
  int awaited = -1;
};
ActivationCopies activation_copies(Lowering& lowering, const NetworkUnit& unit, int stays);
// On the compute stream, until `buffer` is written.
Operation await(int buffer);

bool keeps_weights_away(const Lowering& lowering);
bool keeps_gradients_away(const Plan& plan);
// How many units before the one that needs them weights and gradients come: one, or two where parts
// come that are gathered beside the unit between (ZeRO-Infinity, §6.2).
int units_ahead(const Lowering& lowering);

// Of a unit's pass: its weights come, and what its gradients are added to. Behind the pass the sums
// go.
std::vector<Operation> weights_from_offload(const NetworkUnit& unit, Phase phase);
std::vector<Operation> gradients_from_offload(const NetworkUnit& unit,
                                              const std::vector<Phase>& phases);
std::vector<Operation> gradients_to_offload(const NetworkUnit& unit,
                                            const std::vector<Phase>& phases);
// `coming`, made to wait: until the unit begins beside which it stands; or, for the first units of
// a pass, until the pass before begins. Otherwise it would come as early as the stream is free, and
// take memory for longer.
std::vector<Operation> beside_unit(Lowering& lowering, std::vector<Operation> coming);
std::vector<Operation> beside_pass(Lowering& lowering, std::vector<Operation> coming);
// Says to beside_pass() that a pass begins; on the compute stream.
Operation pass_begins(Lowering& lowering);
// At the end of a step: `operations` on gradients that come for them and go again.
std::vector<Operation> with_gradients_here(const Lowering& lowering,
                                           const std::vector<Parameter>& parameters,
                                           std::vector<Operation> operations);

// The buffers of a weight or a gradient: where it is used, and where it lies from step to step.
struct Places {
  int Parameter::*held;
  int Parameter::*stored;
};

// The update, where states lie. Outside the device the host makes it: what it needs goes there,
// what it makes comes back, and the device waits for all of it (Megatron's hybrid optimizer without
// overlapped copies). On the device, what lies outside comes and goes, this rank's part of it.
class UpdateCrossing {
 public:
  UpdateCrossing(Lowering& lowering, const std::vector<Parameter>& parameters);
  // The parameters as the update finds them, in their held buffers.
  const std::vector<Parameter>& there() const { return there_; }
  // What the norm reads, what else the update needs, and updated weights to where they lie.
  // Gradients are clear then.
  std::vector<Operation> for_norm() const;
  std::vector<Operation> for_update() const;
  std::vector<Operation> back() const;

 private:
  int place(int held, int stored, const Sharing& sharing);
  // `cuts`: one of each two operands is a whole, the other this rank's part of it.
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
