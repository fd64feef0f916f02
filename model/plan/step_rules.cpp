#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "model/plan/rules.h"

namespace trainyard {
namespace {

// ---- Batch ----------------------------------------------------------------------------

Count nearest_multiple(Count number, Count of) {
  const Count below = number - number % of;
  Count above = 0;
  const bool overflows = __builtin_add_overflow(below, of, &above);
  if (below == 0) return above;
  return !overflows && above - number < number - below ? above : below;
}

constexpr PlanRule kBatchSplits = {
    [](const Proposal& p) { return p.microbatches > 0; },
    [](const Proposal& p) {
      const Count batch = p.training.global_batch;
      const Count found = p.request.micro_batch;
      if (divides(p.data_parallel, batch)) {
        const Count sequences = batch / p.data_parallel;
        return refusal("micro_batch",
                       fmt::format("found {}, allowed a divisor of {} = global_batch / "
                                   "data_parallel; nearest {}",
                                   found, sequences,
                                   nearest_divisor(sequences, found, [](Count) { return true; })));
      }
      const Count step = found * p.data_parallel;
      return Error{"/training/global_batch",
                   fmt::format("found {}, allowed a multiple of {} = micro_batch · data_parallel; "
                               "nearest {}",
                               batch, step, nearest_multiple(batch, step))};
    }};

constexpr PlanRule kMicrobatchesCountable = {
    [](const Proposal& p) { return p.microbatches <= kMostRanks; },
    [](const Proposal& p) {
      return Error{"/training/global_batch",
                   fmt::format("found {} micro-batches a step, allowed {} at most", p.microbatches,
                               kMostRanks)};
    }};

// ---- Layers ---------------------------------------------------------------------------

constexpr PlanRule kLayersFillChunks = {
    [](const Proposal& p) { return chunk_count(p) <= Count{p.model.layers} + 2; },
    [](const Proposal& p) {
      const Count most = Count{p.model.layers} + 2;
      const Count stages = p.request.pipeline_parallel;
      if (stages <= most) {
        return refusal("virtual_stages",
                       fmt::format("found {}, allowed {} at most: {} layers on {} stages",
                                   p.virtual_stages, most / stages, p.model.layers, stages));
      }
      const Count left = p.devices / p.request.tensor_parallel / p.request.context_parallel;
      return refusal(
          "pipeline_parallel",
          fmt::format(
              "found {}, allowed {} at most: {} layers; nearest {}", stages, most, p.model.layers,
              nearest_divisor(left, stages, [most](Count count) { return count <= most; })));
    }};

bool chunk_entries(const Proposal& p) {
  const auto entries = static_cast<Count>(p.request.layers_per_stage.size());
  return entries == p.request.pipeline_parallel || entries == chunk_count(p);
}

constexpr PlanRule kLayerEntries = {
    [](const Proposal& p) { return p.request.layers_per_stage.empty() || chunk_entries(p); },
    [](const Proposal& p) {
      const Count stages = p.request.pipeline_parallel;
      const std::string or_chunks =
          chunk_count(p) == stages ? "" : fmt::format(" (stages) or {} (chunks)", chunk_count(p));
      return refusal("layers_per_stage",
                     fmt::format("found {} entries, allowed {}{}",
                                 p.request.layers_per_stage.size(), stages, or_chunks));
    }};

// The first entry that is not legal: a negative one, or one of a stage whose layers do not divide
// evenly over its chunks.
const int* bad_entry(const Proposal& p) {
  const std::vector<int>& layers = p.request.layers_per_stage;
  const bool per_stage = static_cast<Count>(layers.size()) == p.request.pipeline_parallel;
  const int share = per_stage ? p.virtual_stages : 1;
  const auto entry = std::find_if(layers.begin(), layers.end(),
                                  [share](int n) { return n < 0 || n % share != 0; });
  return entry == layers.end() ? nullptr : &*entry;
}

constexpr PlanRule kLayerEntry = {
    [](const Proposal& p) { return bad_entry(p) == nullptr; },
    [](const Proposal& p) {
      const int* entry = bad_entry(p);
      const auto index = entry - p.request.layers_per_stage.data();
      const std::string allowed =
          *entry < 0 ? "0 or more"
                     : fmt::format("a multiple of virtual_stages {}, or {} entries, one a chunk",
                                   p.virtual_stages, chunk_count(p));
      return refusal(fmt::format("layers_per_stage/{}", index),
                     fmt::format("found {}, allowed {}", *entry, allowed));
    }};

Count layer_sum(const Proposal& p) {
  const std::vector<int>& layers = p.request.layers_per_stage;
  return std::accumulate(layers.begin(), layers.end(), Count{0});
}

constexpr PlanRule kLayerSum = {
    [](const Proposal& p) {
      return p.request.layers_per_stage.empty() || layer_sum(p) == p.model.layers;
    },
    [](const Proposal& p) {
      return refusal("layers_per_stage", fmt::format("found {} layers in all, allowed {}",
                                                     layer_sum(p), p.model.layers));
    }};

// ---- Schedule -------------------------------------------------------------------------

PipelineShape shape(const Proposal& p, Count microbatches) {
  return p.schedule->shape(p.request.pipeline_parallel, p.virtual_stages,
                           static_cast<int>(microbatches));
}

constexpr PlanRule kScheduleKnown = {
    [](const Proposal& p) { return p.schedule != nullptr; },
    [](const Proposal& p) {
      std::vector<std::string_view> names;
      for (const Schedule* schedule : schedules()) names.push_back(schedule->name);
      return refusal("schedule", fmt::format("found {}, allowed {}", quoted(p.request.schedule),
                                             fmt::join(names, ", ")));
    }};

// Matters only in a pipeline. The author of a pass list has software that runs it.
constexpr PlanRule kStackRunsSchedule = {
    [](const Proposal& p) {
      const std::vector<std::string>& known = p.training.stack.schedules;
      return known.empty() || p.request.pipeline_parallel == 1 || p.schedule->listed != nullptr ||
             std::ranges::find(known, p.schedule->name) != known.end();
    },
    [](const Proposal& p) {
      const Stack& stack = p.training.stack;
      return refusal("schedule",
                     fmt::format("found {}, which {} does not run, allowed {}", p.schedule->name,
                                 stack.name, fmt::join(stack.schedules, ", ")));
    }};

// For a schedule that cannot take m micro-batches: adds to the error the nearest micro_batch that
// gives a legal m, or if there is none the nearest global batch.
Error refuse_microbatches(const Proposal& p, Error error) {
  const auto takes = [&p](Count m) {
    return m <= kMostRanks && p.schedule->accepts(shape(p, m)).has_value();
  };
  const Count sequences = p.training.global_batch / p.data_parallel;
  const Count micro_batch = nearest_divisor(sequences, p.request.micro_batch,
                                            [&](Count b) { return takes(sequences / b); });
  if (micro_batch > 0) {
    error.message += fmt::format("; nearest micro_batch {}", micro_batch);
    return error;
  }
  constexpr Count kFarthest = 1 << 16;
  for (Count away = 1; away < kFarthest; ++away) {
    for (const Count m : {p.microbatches - away, p.microbatches + away}) {
      if (m < 1 || !takes(m)) continue;
      error.message += fmt::format("; nearest global_batch {}",
                                   saturating_product({m, p.request.micro_batch, p.data_parallel}));
      return error;
    }
  }
  return error;
}

constexpr PlanRule kScheduleAccepts = {
    [](const Proposal& p) { return p.schedule->accepts(shape(p, p.microbatches)).has_value(); },
    [](const Proposal& p) {
      Error error = p.schedule->accepts(shape(p, p.microbatches)).error();
      if (error.where != "/plan/micro_batch") return error;
      return refuse_microbatches(p, std::move(error));
    }};

constexpr std::array kStepRules = {
    kBatchSplits, kMicrobatchesCountable, kLayersFillChunks,  kLayerEntries,   kLayerEntry,
    kLayerSum,    kScheduleKnown,         kStackRunsSchedule, kScheduleAccepts};

}  // namespace

std::span<const PlanRule> step_rules() { return kStepRules; }

}  // namespace trainyard
