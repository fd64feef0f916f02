// The fields of a scenario: the job, perhaps a plan, what the planner may choose, and what a real
// run measured. Design §3.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "model/cluster/fabric_shape.h"
#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"

namespace trainyard {
namespace {

std::optional<Json> not_written(const Scenario& /*scenario*/) { return std::nullopt; }

struct HuggingFaceModel {
  std::string path;
};

const Section<HuggingFaceModel>& huggingface_section() {
  static const Section<HuggingFaceModel> section(
      "huggingface", "A network read from a Hugging Face config.",
      {text("huggingface", &HuggingFaceModel::path,
            "path, absolute or relative to the document; of a vision-language model the text tower "
            "is read",
            {PathShape{"a Hugging Face config.json"}})
           .required()});
  return section;
}

Expected<void> read_model(const Json& value, Scenario& scenario, const Place& place) {
  if (!value.is_object() || !value.contains("huggingface")) {
    return read_reference(model_section(), value, scenario.job.model, place);
  }
  HuggingFaceModel reference;
  if (auto done = huggingface_section().read(value, reference, place); !done) return done;
  auto imported = import_huggingface(reference.path, place / "huggingface");
  if (!imported) return tl::unexpected(imported.error());
  scenario.job.model = std::move(imported->model);
  for (std::string& assumption : imported->assumptions) {
    scenario.assumptions.push_back(std::move(assumption));
  }
  return {};
}

Field<Scenario> training_field() {
  return {{.key = "training",
           .shape = {ObjectShape{&spec_of<training_section>, {}}},
           .doc = "batch, sequence length, precision, optimizer and software stack"},
          [](const Json& value, Scenario& scenario, const Place& place) {
            return training_section().read(value, scenario.job.training, place);
          },
          not_written};
}

using Memory = Named<MemoryKind>;
constexpr std::array kMemoryKinds = {Memory{"allocated", MemoryKind::allocated},
                                     Memory{"reserved", MemoryKind::reserved},
                                     Memory{"device", MemoryKind::device}};

// The power and carbon of the job's cluster; applied to the cluster that was read before.
struct Power {
  std::optional<Watts> device;
  double pue = Cluster{}.pue;
  std::optional<double> carbon_intensity;  // g of CO2 a joule
};

Field<Power> carbon_intensity_field() {
  return {
      {.key = "carbon_intensity",
       .shape = {QuantityShape{Dimension::carbon_intensity}},
       .doc = "carbon intensity of the grid's power",
       .absent = "unknown: no carbon is stated"},
      [](const Json& value, Power& power, const Place&) -> Expected<void> {
        power.carbon_intensity =
            parse_quantity(value.get<std::string>(), Dimension::carbon_intensity, false).value();
        return {};
      },
      [](const Power&) { return std::nullopt; }};
}

const Section<Power>& power_section() {
  static const Section<Power> section(
      "power", "Power that the machines draw.",
      {
          quantity("device", &Power::device, "power draw of one device at full load")
              .absent("as the device's document says"),
          number("pue", &Power::pue,
                 "power usage effectiveness (PUE): power of the site over power of the machines",
                 {1, 10}),
          carbon_intensity_field(),
      });
  return section;
}

// Changes the cluster that was read before, and all its groups.
template <typename Change>
void change_clusters(Scenario& scenario, const Change& change) {
  change(scenario.job.cluster);
  if (!scenario.unlike) return;
  for (Cluster& group : scenario.unlike->groups) change(group);
}

DollarsPerSecond price_of(const Json& value) {
  return DollarsPerSecond(
      parse_quantity(value.get<std::string>(), Dimension::dollars_per_second, false).value());
}

// Reads one price for each group of unlike nodes.
Expected<void> read_prices(const Json& value, Scenario& scenario, const Place& place) {
  const std::size_t groups = scenario.unlike ? scenario.unlike->groups.size() : 0;
  if (value.size() != groups) {
    return place.error(fmt::format(
        "found a list of {}; allowed: {}", value.size(),
        groups == 0 ? "one price, or with groups of unlike nodes a price of each"
                    : fmt::format("a price of each of the {} groups, or one of all", groups)));
  }
  for (std::size_t g = 0; g < groups; ++g) {
    scenario.unlike->groups[g].device.price = price_of(value[g]);
  }
  scenario.job.cluster.device.price = scenario.unlike->groups.front().device.price;
  return {};
}

Field<Scenario> price_field() {
  const Shape one{QuantityShape{Dimension::dollars_per_second}};
  return {{.key = "price",
           .shape = {AnyShape{{one, Shape{ListShape{{one}, 2, kMostGroups}}}}},
           .doc = "price of one device; a list has one for each group of unlike nodes",
           .absent = "as the device's document says"},
          [](const Json& value, Scenario& scenario, const Place& place) -> Expected<void> {
            if (value.is_array()) return read_prices(value, scenario, place);
            const DollarsPerSecond price = price_of(value);
            change_clusters(scenario, [price](Cluster& cluster) { cluster.device.price = price; });
            return {};
          },
          not_written};
}

Field<Scenario> power_field() {
  return {{.key = "power",
           .shape = {ObjectShape{&spec_of<power_section>, {}}},
           .doc = "power and carbon intensity, for energy and emissions",
           .absent = "as the device's document says"},
          [](const Json& value, Scenario& scenario, const Place& place) {
            Power power;
            auto done = power_section().read(value, power, place);
            change_clusters(scenario, [&power](Cluster& cluster) {
              cluster.device.power = power.device.value_or(cluster.device.power);
              cluster.pue = power.pue;
            });
            scenario.carbon_intensity = power.carbon_intensity;
            return done;
          },
          not_written};
}

// Chooses the release of the scenario, else that of its measurement. What the release changes is
// resolved when the job is prepared, because a group, a planner's network or a sweep's point may
// have another stack.
void choose_release(Scenario& scenario) {
  Training& training = scenario.job.training;
  if (training.release.empty() && scenario.measured) training.release = scenario.measured->release;
}

// Whether the plan, or every plan that the planner may choose, uses ZeRO.
bool asks_for_zero(const Scenario& scenario) {
  const bool planned = scenario.plan && (scenario.plan->zero_stage.value_or(0) > 0 ||
                                         scenario.plan->sharding_group.has_value());
  return planned || !scenario.space.zero_stage.has(0);
}

// Checks the simulation against the job. Not for groups of unlike nodes, where it depends on their
// use, and not without a cluster, which a sweep's point may lack here.
Expected<void> check_simulation(const Scenario& scenario, const Place& place) {
  if (scenario.unlike || scenario.job.cluster.devices() == 0) return {};
  const auto checked = check(scenario.simulation, scenario.job);
  if (checked) return {};
  return Place{place.document, place.pointer + checked.error().where}.error(
      checked.error().message);
}

// Checks the use of groups, except without a cluster: a sweep's point may read this section alone.
Expected<void> check_use_of_groups(const Scenario& scenario, const Place& place) {
  if (!scenario.use_of_groups || scenario.job.cluster.devices() == 0) return {};
  const Place at = place / "use_of_groups";
  if (!scenario.unlike) {
    return at.error("found with one kind of node; allowed: with /cluster/groups");
  }
  if (!scenario.plan) return at.error("found without /plan; allowed: with it");
  return {};
}

// A note for a device on other links than those its collectives were measured on; empty: the same.
std::string unlike_links(const Cluster& cluster) {
  const Device& device = cluster.device;
  if (device.collectives.empty() || !device.link_kind || cluster.devices_per_node == 1) return {};
  const std::string start =
      fmt::format("{}'s collectives were measured on {} of {:.4g} GB/s", device.name,
                  name_of(*device.link_kind), device.link_bandwidth.value() / 1e9);
  if (*device.link_kind != cluster.intra.kind) {
    return fmt::format("{}: on {} the formulas of the algorithms are used", start,
                       name_of(cluster.intra.kind));
  }
  if (device.link_bandwidth == cluster.intra.bandwidth) return {};
  return fmt::format("{}: what bytes take is scaled to {:.4g} GB/s", start,
                     cluster.intra.bandwidth.value() / 1e9);
}

// The bytes a second that each device sends and receives in a long all-reduce (NCCL's "bus
// bandwidth").
BytesPerSecond bus_bandwidth(const CollectiveCurve& all_reduce) {
  return all_reduce.bandwidth * (2.0 * (all_reduce.gpus - 1) / all_reduce.gpus);
}

// A note on a table of collectives whose machine attained little of its links' bandwidth among as
// many devices as a node has, which another machine may not; empty: it attained enough.
std::string slow_links(const Cluster& cluster) {
  constexpr double kLittle = 1.0 / 8;
  const Device& device = cluster.device;
  if (device.link_kind && *device.link_kind != cluster.intra.kind) return {};
  const CollectiveCurve* largest = nullptr;
  for (const CollectiveCurve& curve : device.collectives) {
    if (curve.operation != CollectiveOperation::all_reduce) continue;
    if (curve.gpus > cluster.devices_per_node) continue;
    if (largest == nullptr || curve.gpus > largest->gpus) largest = &curve;
  }
  if (largest == nullptr) return {};
  const BytesPerSecond reached = bus_bandwidth(*largest);
  if (reached >= device.link_bandwidth * kLittle) return {};
  return fmt::format(
      "{}'s all-reduce among {} is as one machine had it: {:.2g} GB/s a device, on links of {:.4g} "
      "GB/s; `trainyard fit` takes a table of yours",
      device.name, largest->gpus, reached.value() / 1e9, device.link_bandwidth.value() / 1e9);
}

// A note for a device without a table of collectives; empty: it has one, or a node is one device.
std::string unmeasured_links(const Cluster& cluster) {
  if (!cluster.device.collectives.empty() || cluster.devices_per_node <= 1) return {};
  return fmt::format(
      "nobody measured {}'s collectives: the formulas of the algorithms are used, on all of the "
      "{:.4g} GB/s of its links; `trainyard fit` takes a table of yours",
      cluster.device.name, cluster.intra.bandwidth.value() / 1e9);
}

// A note on racks that the cluster does not fill (NVL72); empty: all are full, or a node is a
// domain.
std::string part_filled_domains(const Cluster& cluster) {
  if (cluster.devices_per_node == 0) return {};  // a sweep's point may lack the cluster here
  const int most = cluster.nvlink_domain / cluster.devices_per_node;
  if (cluster.intra.kind != IntraNodeKind::nvswitch || cluster.nodes <= most) return {};
  const int nodes = nodes_per_domain(cluster);
  const int rest = cluster.nodes % nodes;
  if (most <= 1 || (nodes == most && rest == 0)) return {};
  const std::string last = rest == 0 ? "" : fmt::format(", the last one with {}", rest);
  return fmt::format("NVLink domains, which have room for {} nodes, are filled with {} each{}",
                     most, nodes, last);
}

// A note on a node's latency that is not used because the device's curves have their own; empty:
// the node has none.
std::string unused_latency(const Cluster& cluster) {
  const Device& device = cluster.device;
  const bool own = !device.link_kind || *device.link_kind == cluster.intra.kind;
  if (device.collectives.empty() || !own || cluster.devices_per_node == 1) return {};
  if (cluster.intra.latency == IntraNode{}.latency) return {};
  return fmt::format(
      "{}'s collectives were measured: inside a node their own latency counts, not intra_node's "
      "{:.4g} us",
      device.name, cluster.intra.latency.value() * 1e6);
}

void note_links(Scenario& scenario) {
  const std::span<const Cluster> all =
      scenario.unlike ? std::span(scenario.unlike->groups) : std::span(&scenario.job.cluster, 1);
  for (const Cluster& cluster : all) {
    for (std::string note : {unlike_links(cluster), unused_latency(cluster), slow_links(cluster),
                             unmeasured_links(cluster), part_filled_domains(cluster)}) {
      const auto known = std::ranges::find(scenario.assumptions, note);
      const bool is_new = known == scenario.assumptions.end();
      if (!note.empty() && is_new) scenario.assumptions.push_back(std::move(note));
    }
  }
}

Expected<void> finish_scenario(Scenario& scenario, const Place& place) {
  note_links(scenario);
  if (auto done = check_use_of_groups(scenario, place); !done) return done;
  if (auto done = choose_zero_stack(scenario, place); !done) return done;
  choose_release(scenario);
  if (auto done = check_simulation(scenario, place); !done) return done;
  return check_sizes(scenario, place);
}

}  // namespace

Expected<void> choose_zero_stack(Scenario& scenario, const Place& place) {
  Stack& stack = scenario.job.training.stack;
  if (stack.zero_stack.empty() || !asks_for_zero(scenario)) return {};
  const Stack own = std::exchange(stack, Stack{});
  scenario.assumptions.push_back(
      fmt::format("{} has no ZeRO: the plan runs on {}", own.name, own.zero_stack));
  return read_reference(stack_section(), Json(own.zero_stack), stack, place / "training" / "stack");
}

Field<Scenario> model_field() {
  return {{.key = "model",
           .shape = {AnyShape{{Shape{ReferenceShape{"model"}},
                               Shape{ObjectShape{&spec_of<huggingface_section>, "huggingface"}},
                               Shape{ObjectShape{&spec_of<model_section>, {}}}}}},
           .doc = "network that is trained"},
          read_model,
          not_written};
}

const Section<Measured>& measured_section() {
  using M = Measured;
  static const Section<M> section(
      "measured", "What a real run gave; `trainyard validate` compares it with predictions.",
      {
          quantity("step_time", &M::step_time, "time of one step").absent("not measured"),
          number("tflops_per_device", &M::tflops_per_device,
                 "model TFLOP/s per device, counting attention in full", {0, 1e6, false})
              .absent("not measured"),
          number("mfu", &M::mfu, "model FLOP utilisation (MFU), a fraction", {1e-4, 1})
              .absent("not measured"),
          number("tokens_per_second_per_device", &M::tokens_per_second_per_device,
                 "throughput, in tokens per second and device", {0, 1e12, false})
              .absent("not measured"),
          quantity("peak_memory", &M::peak_memory, "peak memory of the fullest rank")
              .absent("not measured"),
          choice("peak_memory_kind", &M::peak_memory_kind, kMemoryKinds,
                 "what `peak_memory` is: the allocator's allocated or reserved bytes, or the "
                 "device's use"),
          text("source", &M::source, "publication of the measurement"),
          text("release", &M::release,
               "version of the software; one that starts with year and month, `\"25.04\"`, chooses "
               "the stack's `releases`"),
      });
  return section;
}

const Section<Scenario>& scenario_section() {
  using S = Scenario;
  static const Section<S> section(
      "scenario", "A question: a job, perhaps a plan, perhaps what a real run measured.",
      {
          text("name", &S::name, "name that tables show").absent("the name of the file"),
          remark<S>("question", "what the document asks, and what to read in the answer"),
          model_field().required(),
          cluster_field().required(),
          training_field().required(),
          object<plan_section>(
              "plan", &S::plan,
              "how the step is divided among the devices: degrees, schedule, sharding")
              .absent("the planner finds it"),
          object<use_of_groups_section>("use_of_groups", &S::use_of_groups,
                                        "with groups of unlike nodes: which of them take the "
                                        "stages or the replicas of the plan")
              .absent("without a plan the planner finds it"),
          object<planner_section>("planner", &S::space,
                                  "what the planner may choose, and sizes to plan for")
              .absent("everything"),
          object<measured_section>("measured", &S::measured,
                                   "what a real run gave, to compare with")
              .absent("nothing to compare with"),
          price_field(),
          power_field(),
          object<run_section>("run", &S::run, "length of the whole run, for `trainyard goodput`")
              .absent("the defaults of its keys"),
          object<reliability_section>("reliability", &S::reliability,
                                      "what fails and how it is repaired, for `trainyard goodput`")
              .absent("the defaults of its keys"),
          object<checkpoint_section>(
              "checkpoint", &S::checkpoint,
              "how checkpoints are written and loaded, for `trainyard goodput`")
              .absent("the defaults of its keys"),
          object<simulation_section>("simulation", &S::simulation,
                                     "what disturbs the step in `trainyard simulate`")
              .absent("nothing: all ranks and links are alike"),
      },
      {.finish = finish_scenario, .tag = "scenario/1"});
  return section;
}

}  // namespace trainyard
