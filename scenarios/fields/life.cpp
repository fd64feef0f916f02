// The fields of `run`, `reliability` and `checkpoint`: how long a run is, what fails and how it is
// mended, where checkpoints go. Defaults and their sources: model/cost/reliability_settings.h.
#include <fmt/format.h>

#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

constexpr std::array kLaws = {Named<FailureLaw>{"exponential", FailureLaw::exponential},
                              Named<FailureLaw>{"weibull", FailureLaw::weibull}};
using Elastic = Named<ElasticPolicy>;
constexpr std::array kElastic = {Elastic{"wait", ElasticPolicy::wait},
                                 Elastic{"shrink", ElasticPolicy::shrink},
                                 Elastic{"replan", ElasticPolicy::replan}};
using NamedMode = Named<CheckpointMode>;
constexpr std::array kModes = {NamedMode{"synchronous", CheckpointMode::synchronous},
                               NamedMode{"asynchronous", CheckpointMode::asynchronous}};
using Tier = Named<TierKind>;
constexpr std::array kTiers = {Tier{"memory", TierKind::memory}, Tier{"nvme", TierKind::nvme},
                               Tier{"storage", TierKind::storage}};

const Section<RackFailures>& racks_section() {
  static const Section<RackFailures> section(
      "racks", "Failures that take down all nodes of a rack.",
      {count("nodes", &RackFailures::nodes, "number of nodes in a rack", {.most = 1e6}).required(),
       quantity("mtbf", &RackFailures::mtbf, "mean time between failures of one rack").required()});
  return section;
}

const Section<LeafFailures>& leaves_section() {
  static const Section<LeafFailures> section(
      "leaves", "Failures of leaf switches, which take down the nodes below them.",
      {quantity("mtbf", &LeafFailures::mtbf, "mean time between failures of one switch")
           .required()});
  return section;
}

const Section<SilentCorruption>& silent_section() {
  using S = SilentCorruption;
  static const Section<S> section(
      "silent", "Devices that compute wrong results without an error (silent data corruption).",
      {quantity("mtbf", &S::mtbf, "mean time between corruptions of one device").required(),
       quantity("detection", &S::detection,
                "mean time until a corruption is found; the default is assumed")});
  return section;
}

const Section<Stragglers>& stragglers_section() {
  using S = Stragglers;
  static const Section<S> section(
      "stragglers", "Devices that become slow, and the job with them, until they are evicted.",
      {quantity("mtbf", &S::mtbf, "mean time until one device becomes slow").required(),
       number("speed", &S::speed,
              "speed of the job while a device is slow, over its usual one; the default is assumed",
              {1e-4, 1}),
       quantity("detection", &S::detection,
                "time until a slow device is found and evicted; the default is assumed")});
  return section;
}

// Maintenance must be shorter than the time from one window to the next.
Expected<void> check_windows(Maintenance& maintenance, const Place& place) {
  if (maintenance.duration < maintenance.every) return {};
  return (place / "duration")
      .error("found a window as long as the time from one to the next; allowed: less than `every`");
}

const Section<Maintenance>& maintenance_section() {
  using M = Maintenance;
  static const Section<M> section(
      "maintenance",
      "Maintenance windows, in which the job stands still; it writes a checkpoint before.",
      {quantity("every", &M::every, "time from one maintenance window to the next").required(),
       quantity("duration", &M::duration,
                "length of a maintenance window; the default is assumed")},
      {.finish = check_windows});
  return section;
}

const Section<Heartbeat>& heartbeat_section() {
  using H = Heartbeat;
  static const Section<H> section(
      "heartbeat", "How a dead node is noticed.",
      {quantity("interval", &H::interval, "time between two heartbeats of a node"),
       count("misses", &H::misses,
             "number of missing heartbeats in a row after which a node counts as dead",
             {.most = 1000}),
       number("loss", &H::loss,
              "share of healthy nodes' heartbeats that get lost, which raises false alarms",
              {0, 0.9})});
  return section;
}

const Section<RestartTimes>& restart_section() {
  using R = RestartTimes;
  static const Section<R> section(
      "restart",
      "Phases of a restart beside detection and loading. Defaults of diagnosis and start are by "
      "Jiang et al. 2024, the others are assumed.",
      {quantity("diagnose", &R::diagnose, "time to find the node that failed", Zero::allowed),
       quantity("reschedule", &R::reschedule, "time to put another node in its place",
                Zero::allowed),
       quantity("start", &R::start, "time to start processes and communicators", Zero::allowed),
       quantity("warm_up", &R::warm_up, "time for compilation, data and first steps",
                Zero::allowed)});
  return section;
}

const Section<TracedFailure>& traced_failure_section() {
  using T = TracedFailure;
  static const Section<T> section(
      "trace", "A failure that happened.",
      {quantity("at", &T::at, "time of the failure, from the start of the run").required(),
       count("nodes", &T::nodes, "number of nodes lost; 0: the job restarts on its own nodes",
             {.least = 0, .most = 1e6})});
  return section;
}

const Section<StorageTier>& tier_section() {
  using T = StorageTier;
  static const Section<T> section(
      "tiers",
      "A place for checkpoints. Those on nodes are lost when all nodes that hold one of their "
      "parts fail.",
      {choice("kind", &T::kind, kTiers,
              "where the checkpoints lie: hosts' memory, nodes' NVMe, or a store that failures do "
              "not reach")
           .required(),
       count("every", &T::every,
             "one of so many checkpoints is written to this tier; 1 in the first tier",
             {.most = 1e6}),
       count("peers", &T::peers,
             "memory, nvme: number of other nodes that keep a copy of a node's part",
             {.least = 0, .most = 64}),
       quantity("write_bandwidth", &T::write_bandwidth, "write bandwidth of the whole tier")
           .absent("a store: 1 GB/s per node of the job (Llama 3: 2 TB/s for 2,048); else what the "
                   "nodes' NICs and NVMe give"),
       quantity("read_bandwidth", &T::read_bandwidth, "read bandwidth of the whole tier")
           .absent("`write_bandwidth`; without that its default"),
       number("contention", &T::contention, "share of the tier's bandwidth that other jobs take",
              {0, 0.99})});
  return section;
}

const Section<Incremental>& incremental_section() {
  using I = Incremental;
  static const Section<I> section(
      "incremental", "Between two full checkpoints only what changed is written.",
      {count("full_every", &I::full_every, "one of so many checkpoints is a full one",
             {.most = 1e6}),
       number("share", &I::share, "bytes of an incremental checkpoint over those of a full one",
              {1e-4, 1})});
  return section;
}

// The first tier must take every checkpoint: what is saved before a planned stop must be somewhere,
// and the closed form knows only the first tier.
Expected<void> check_first_tier(Checkpointing& checkpointing, const Place& place) {
  if (checkpointing.tiers.empty() || checkpointing.tiers.front().every == 1) return {};
  return (place / "tiers" / std::size_t{0} / "every")
      .error(fmt::format("found {} in the first tier; allowed: 1, every checkpoint goes there",
                         checkpointing.tiers.front().every));
}

// Sorts the trace by time, as the simulation needs it.
Expected<void> sort_trace(Reliability& reliability, const Place& /*place*/) {
  std::ranges::stable_sort(reliability.trace, {}, &TracedFailure::at);
  return {};
}

}  // namespace

const Section<RunLength>& run_section() {
  using R = RunLength;
  static const Section<R> section(
      "run", "The whole training run that `trainyard goodput` simulates.",
      {quantity("work", &R::work, "training time that the run would take without any loss")
           .absent("the time that `training.tokens` take"),
       quantity("duration", &R::duration, "calendar time after which the run ends")
           .absent("the run ends when its work is done"),
       count("runs", &R::runs, "number of simulated runs, each with failures of its own",
             {.most = 1e6}),
       count("seed", &R::seed, "random seed of the first simulated run",
             {.least = 0, .most = 1e15})});
  return section;
}

const Section<Reliability>& reliability_section() {
  using R = Reliability;
  static const Section<R> section(
      "reliability", "What fails, how it is noticed and how it is repaired.",
      {
          quantity("device_mtbf", &R::device_mtbf, "mean time between failures of one device")
              .absent("`\"2111.5 days\"`: 419 interruptions in 54 days on 16,384 GPUs (Llama 3)"),
          choice("law", &R::law, kLaws,
                 "distribution of the times between failures of the job's devices"),
          number("weibull_shape", &R::weibull_shape,
                 "shape of the Weibull law; below 1 failures come in bursts", {0.1, 10}),
          number("hardware_share", &R::hardware_share,
                 "share of device failures that cost a node (Llama 3: 78 %); after the others it "
                 "stays",
                 {0, 1}),
          object<racks_section>("racks", &R::racks, "failures of whole racks").absent("none"),
          object<leaves_section>("leaves", &R::leaves, "failures of leaf switches").absent("none"),
          object<silent_section>("silent", &R::silent, "silent data corruption").absent("none"),
          object<stragglers_section>("stragglers", &R::stragglers, "devices that become slow")
              .absent("none"),
          object<maintenance_section>("maintenance", &R::maintenance, "planned maintenance windows")
              .absent("none"),
          objects<traced_failure_section>("trace", &R::trace,
                                          "list of failures, instead of random ones")
              .absent("random failures"),
          object<heartbeat_section>("heartbeat", &R::heartbeat, "how dead nodes are detected")
              .absent("the defaults of its keys"),
          object<restart_section>("restart", &R::restart, "how long a restart takes")
              .absent("the defaults of its keys"),
          count("spares", &R::spares, "number of hot spare nodes, paid beside the job's own",
                {.least = 0, .most = 1e6})
              .absent("1 % of the nodes, at least 1"),
          quantity("repair", &R::repair,
                   "mean time until a lost node is back; the default is assumed"),
          choice("elastic", &R::elastic, kElastic,
                 "what the job does without a spare: wait for a repair, shrink to fewer replicas, "
                 "or go on with the best plan for the nodes that are left"),
      },
      {.finish = sort_trace});
  return section;
}

const Section<Checkpointing>& checkpoint_section() {
  using C = Checkpointing;
  static const Section<C> section(
      "checkpoint", "How checkpoints are written and loaded.",
      {
          choice("mode", &C::mode, kModes,
                 "synchronous: training waits until a checkpoint is written; asynchronous: only "
                 "until it is copied to the hosts"),
          quantity("interval", &C::interval, "training time between two checkpoints")
              .absent("Daly's optimal interval"),
          quantity("bytes", &C::bytes, "size of a full checkpoint")
              .absent("weights, master weights and moments"),
          flag("sharded", &C::sharded,
               "whether all nodes write a part; false: only those of one replica"),
          number("interference", &C::interference,
                 "seconds of training lost per second of background writing", {0, 1}),
          object<incremental_section>("incremental", &C::incremental,
                                      "smaller checkpoints between two full ones")
              .absent("all are full"),
          count("keep", &C::keep,
                "number of checkpoints that a tier retains, beside the full one that increments "
                "need; 0: all",
                {.least = 0, .most = 1e6}),
          number("load_failure", &C::load_failure,
                 "share of loaded checkpoints that validation refuses", {0, 0.99}),
          quantity("validation", &C::validation, "time to validate a loaded checkpoint",
                   Zero::allowed),
          objects<tier_section>("tiers", &C::tiers,
                                "places that checkpoints are written to, in this order")
              .absent("one store"),
      },
      {.finish = check_first_tier});
  return section;
}

}  // namespace trainyard
