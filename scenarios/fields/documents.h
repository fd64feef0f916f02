// The sections of all kinds of documents: each is a table of fields, defined in the file of its
// name. A section that can be a document of its own has the name of that kind.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/device.h"
#include "model/cost/reliability_settings.h"
#include "model/plan/plan.h"
#include "model/program/profile.h"
#include "model/schedule/schedule.h"
#include "model/workload/stack.h"
#include "model/workload/training.h"
#include "model/workload/transformer.h"
#include "scenarios/fields/section.h"
#include "scenarios/huggingface.h"
#include "scenarios/scenario.h"

namespace trainyard {

struct SweepDocument;  // scenarios/sweep/sweep_document.h

// A node as it is sold: devices, the links among them, and its NICs.
struct Node {
  std::string name;
  std::string source;
  Device device;
  int devices = 0;
  IntraNode intra;
  int nics = 0;
  BytesPerSecond nic_bandwidth;
  int nvlink_domain = 0;  // devices of an NVLink domain; 0: those of the node
  std::optional<Bytes> host_memory;
  BytesPerSecond host_memory_bandwidth = Cluster{}.host_memory_bandwidth;
  BytesPerSecond nvme_bandwidth = Cluster{}.nvme_bandwidth;
};

// The measurements that a fabric's figures were fitted to: collectives over whole nodes of this
// kind, in the rows of one source, by one algorithm if it is known.
struct FabricMeasured {
  Node node;
  std::string source;
  std::string algorithm;
};

// What connects the nodes, if it is not the default. A figure that is absent is the node's own.
struct FabricDocument {
  std::string name;
  std::string source;
  InterNode inter{.kind = InterNodeKind::rail};
  std::optional<FabricMeasured> measured;
};

Cluster cluster_of(const Node& node, int nodes, const InterNode& inter);

// A pass list as a document writes it: for every stage its passes in order, such as "F0" or
// "F3.1+B2.0".
struct PassTable {
  std::string name;
  int stages = 0, virtual_stages = 1, microbatches = 0;
  Route route = Route::loop;
  bool optimizer_barrier = true;
  std::vector<std::vector<std::string>> passes;
};

// Kinds of documents.
const Section<Scenario>& scenario_section();
const Section<Transformer>& model_section();
const Section<Device>& device_section();
const Section<Node>& node_section();
const Section<FabricDocument>& fabric_section();
const Section<Stack>& stack_section();
const Section<PassTable>& passes_section();
const Section<Profile>& profile_section();
const Section<SweepDocument>& sweep_section();

// Parts of a scenario.
Field<Scenario> model_field();
Field<Scenario> cluster_field();
const Section<Training>& training_section();
const Section<PlanRequest>& plan_section();
const Section<PlannerKeys>& planner_section();
const Section<GroupedRequest>& use_of_groups_section();
const Section<Measured>& measured_section();
const Section<RunLength>& run_section();
const Section<Reliability>& reliability_section();
const Section<Checkpointing>& checkpoint_section();
const Section<StepConditions>& simulation_section();

// Parts that two sections share.
const Section<IntraNode>& intra_node_section();
std::vector<Field<InterNode>> inter_node_fields();
// Fails where `inter` has keys that do not go with its kind of fabric; fields alone cannot say
// this.
Expected<void> check_keys_of_kind(const InterNode& inter, const Place& place);

// `plan.recompute`, what the backward pass computes again, for the plan or for one stage: how it is
// read and written, and its shape for a stage.
Expected<void> read_recompute(const Json& value, PlanRequest& plan, const Place& place);
Json recompute_value(const PlanRequest& plan);
Json recompute_value(const RecomputeChoice& choice);
Shape stage_recompute_shape();

// Checks that `cluster` has a size that its kind allows; `place` is the section that has `nodes`,
// of a cluster or of the planner.
Expected<void> check_size(const Cluster& cluster, const Place& place);
// A plan with ZeRO on a stack without it: changes to the stack that this stack names
// (`zero_stack`).
Expected<void> choose_zero_stack(Scenario& scenario, const Place& place);
// Checks the sizes of the planner section; call once everything else is read.
Expected<void> check_sizes(const Scenario& scenario, const Place& place);

// Imports the Hugging Face config at `path`, which is relative to the document of `place`.
Expected<ImportedModel> import_huggingface(const std::string& path, const Place& place);

// The schedule of a pass table; fails unless it can be played.
Expected<std::shared_ptr<const ListedSchedule>> schedule_of(const PassTable& table,
                                                            const Place& place);
PassTable pass_table_of(const ListedSchedule& schedule);

// Fills the defaults that depend on other fields, and refuses impossible networks.
Expected<void> complete(Transformer& model, const Place& place);

// Which communication overlaps compute, as a plan asks for it (OverlapRequest) and as a stack has
// it (StackOverlap).
template <typename O>
std::vector<Field<O>> overlap_fields() {
  return {flag("tensor_parallel", &O::tensor_parallel,
               "whether tensor-parallel collectives overlap compute"),
          flag("context_parallel", &O::context_parallel,
               "whether context-parallel communication overlaps compute"),
          flag("expert_parallel", &O::expert_parallel,
               "whether the all-to-alls of expert parallelism overlap compute"),
          flag("pipeline", &O::pipeline, "whether sends between pipeline stages overlap compute"),
          flag("data_parallel", &O::data_parallel,
               "whether the reduction of gradients and the gathering of parameters overlap "
               "compute")};
}

}  // namespace trainyard
