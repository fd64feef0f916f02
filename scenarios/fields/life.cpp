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
      "racks", "Failures that take all nodes of a rack.",
      {count("nodes", &RackFailures::nodes, "of one rack", {.most = 1e6}).required(),
       quantity("mtbf", &RackFailures::mtbf, "mean time between failures of one rack").required()});
  return section;
}

const Section<LeafFailures>& leaves_section() {
  static const Section<LeafFailures> section(
      "leaves", "Failures of leaf switches, which take the nodes below them.",
      {quantity("mtbf", &LeafFailures::mtbf, "mean time between failures of one switch")
           .required()});
  return section;
}

const Section<SilentCorruption>& silent_section() {
  using S = SilentCorruption;
  static const Section<S> section(
      "silent", "Devices that compute wrongly without saying so.",
      {quantity("mtbf", &S::mtbf, "mean time between corruptions of one device").required(),
       quantity("detection", &S::detection, "mean time until it is found; assumed")});
  return section;
}

const Section<Stragglers>& stragglers_section() {
  using S = Stragglers;
  static const Section<S> section(
      "stragglers", "Devices that become slow, and the job with them, until they are evicted.",
      {quantity("mtbf", &S::mtbf, "mean time until one device becomes slow").required(),
       number("speed", &S::speed, "of the job while one is slow; assumed", {1e-4, 1}),
       quantity("detection", &S::detection, "until it is found and evicted; assumed")});
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
      "maintenance", "Windows in which the job stands, after a checkpoint.",
      {quantity("every", &M::every, "from one window to the next").required(),
       quantity("duration", &M::duration, "of a window; assumed")},
      {.finish = check_windows});
  return section;
}

const Section<Heartbeat>& heartbeat_section() {
  using H = Heartbeat;
  static const Section<H> section(
      "heartbeat", "How a dead node is noticed.",
      {quantity("interval", &H::interval, "between two heartbeats of a node"),
       count("misses", &H::misses, "in a row that make a node dead", {.most = 1000}),
       number("loss", &H::loss, "share of heartbeats of healthy nodes that get lost", {0, 0.9})});
  return section;
}

const Section<RestartTimes>& restart_section() {
  using R = RestartTimes;
  static const Section<R> section(
      "restart",
      "Phases of a restart beside detection and loading (Jiang et al. 2024 for diagnosis and "
      "start; "
      "else assumed).",
      {quantity("diagnose", &R::diagnose, "finding the node that failed", Zero::allowed),
       quantity("reschedule", &R::reschedule, "putting another in its place", Zero::allowed),
       quantity("start", &R::start, "processes and communicators", Zero::allowed),
       quantity("warm_up", &R::warm_up, "compilation, data, first steps", Zero::allowed)});
  return section;
}

const Section<TracedFailure>& traced_failure_section() {
  using T = TracedFailure;
  static const Section<T> section("trace", "A failure that happened.",
                                  {quantity("at", &T::at, "after the start of the run").required(),
                                   count("nodes", &T::nodes, "lost; 0: the job restarts on its own",
                                         {.least = 0, .most = 1e6})});
  return section;
}

const Section<StorageTier>& tier_section() {
  using T = StorageTier;
  static const Section<T> section(
      "tiers",
      "A place for checkpoints. What lies on nodes is lost when all that hold a part fail.",
      {choice("kind", &T::kind, kTiers,
              "hosts' memory, nodes' NVMe, or a store that failures do not reach")
           .required(),
       count("every", &T::every, "of so many checkpoints one is written here; 1 in the first tier",
             {.most = 1e6}),
       count("peers", &T::peers, "memory, nvme: other nodes with a copy", {.least = 0, .most = 64}),
       quantity("write_bandwidth", &T::write_bandwidth, "of the whole tier")
           .absent(
               "1 GB/s a node of a store (Llama 3: 2 TB/s for 2,048); else a node's NICs, NVMe"),
       quantity("read_bandwidth", &T::read_bandwidth, "of the whole tier").absent("likewise"),
       number("contention", &T::contention, "share of the bandwidth that others take", {0, 0.99})});
  return section;
}

const Section<Incremental>& incremental_section() {
  using I = Incremental;
  static const Section<I> section(
      "incremental", "Between two full checkpoints only what changed is written.",
      {count("full_every", &I::full_every, "of so many checkpoints one is full", {.most = 1e6}),
       number("share", &I::share, "of a full one's bytes", {1e-4, 1})});
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
      {quantity("work", &R::work, "of training without any loss")
           .absent("what the `tokens` of `training` take"),
       quantity("duration", &R::duration, "of the calendar, after which the run ends")
           .absent("until the work is done"),
       count("runs", &R::runs, "simulated, each with failures of its own", {.most = 1e6}),
       count("seed", &R::seed, "of the first one", {.least = 0, .most = 1e15})});
  return section;
}

const Section<Reliability>& reliability_section() {
  using R = Reliability;
  static const Section<R> section(
      "reliability", "What fails, how it is noticed and how it is mended.",
      {
          quantity("device_mtbf", &R::device_mtbf, "mean time between failures of one device")
              .absent("`\"2111.5 days\"`: 419 interruptions in 54 days on 16,384 (Llama 3)"),
          choice("law", &R::law, kLaws, "of the times between failures of the job's devices"),
          number("weibull_shape", &R::weibull_shape, "below 1 failures come in bursts", {0.1, 10}),
          number("hardware_share", &R::hardware_share,
                 "of the failures that cost a node (Llama 3: 78 %)", {0, 1}),
          object<racks_section>("racks", &R::racks, "correlated failures").absent("none"),
          object<leaves_section>("leaves", &R::leaves, "correlated failures").absent("none"),
          object<silent_section>("silent", &R::silent, "silent data corruption").absent("none"),
          object<stragglers_section>("stragglers", &R::stragglers, "slow devices").absent("none"),
          object<maintenance_section>("maintenance", &R::maintenance, "planned stops")
              .absent("none"),
          objects<traced_failure_section>("trace", &R::trace, "failures, instead of random ones")
              .absent("random failures"),
          object<heartbeat_section>("heartbeat", &R::heartbeat, "detection")
              .absent("the defaults of its keys"),
          object<restart_section>("restart", &R::restart, "how long a restart takes")
              .absent("the defaults of its keys"),
          count("spares", &R::spares, "hot nodes beside the job's", {.least = 0, .most = 1e6})
              .absent("1 % of the nodes, at least 1"),
          quantity("repair", &R::repair, "mean time until a lost node is back; assumed"),
          choice("elastic", &R::elastic, kElastic,
                 "without a spare: wait for a repair, shrink to fewer replicas, or go on with the "
                 "best plan for the nodes that are left"),
      },
      {.finish = sort_trace});
  return section;
}

const Section<Checkpointing>& checkpoint_section() {
  using C = Checkpointing;
  static const Section<C> section(
      "checkpoint", "How checkpoints are written and loaded.",
      {
          choice("mode", &C::mode, kModes, "whether training waits for the writing"),
          quantity("interval", &C::interval, "of training between two").absent("Daly's"),
          quantity("bytes", &C::bytes, "of a full one")
              .absent("weights, master weights and moments"),
          flag("sharded", &C::sharded, "all nodes write; else those of one replica"),
          number("interference", &C::interference,
                 "training time lost a second of background writing", {0, 1}),
          object<incremental_section>("incremental", &C::incremental, "smaller ones between")
              .absent("all are full"),
          count("keep", &C::keep,
                "that a tier retains, beside the full one that increments need; 0: all",
                {.least = 0, .most = 1e6}),
          number("load_failure", &C::load_failure, "share that validation on load refuses",
                 {0, 0.99}),
          quantity("validation", &C::validation, "of a loaded checkpoint", Zero::allowed),
          objects<tier_section>("tiers", &C::tiers, "places, the first written first")
              .absent("one store"),
      },
      {.finish = check_first_tier});
  return section;
}

}  // namespace trainyard
