#include "gui/presenters/plan/plan_knobs.h"

#include <QCoreApplication>
#include <algorithm>
#include <numeric>
#include <optional>

#include "gui/presenters/text.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

constexpr int kLargestListed = 64;  // larger values: only powers of two and divisors of `divided`

std::vector<int> values_to(int most, int divided) {
  std::vector<int> values;
  for (int value = 1; value <= std::min(most, kLargestListed); ++value) values.push_back(value);
  for (int value = kLargestListed + 1; value <= std::min(most, 8192); ++value) {
    const bool power = (value & (value - 1)) == 0;
    if (power || divided % value == 0) values.push_back(value);
  }
  return values;
}

std::vector<int> degrees(const Job& job) {
  return values_to(job.cluster.devices(), job.cluster.devices());
}
std::vector<int> layer_counts(const Job& job) { return values_to(job.model.layers, 1); }
std::vector<int> expert_counts(const Job& job) {
  return job.model.experts > 0 ? values_to(job.model.experts, job.model.experts)
                               : std::vector<int>{1};
}
std::vector<int> expert_degrees(const Job& job) {
  return job.model.experts > 0 ? degrees(job) : std::vector<int>{1};
}
std::vector<int> batches(const Job& job) {
  return values_to(static_cast<int>(std::min<std::int64_t>(job.training.global_batch, 1024)), 1);
}
std::vector<int> first_n(int count) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}
std::vector<int> zero_stages(const Job& /*job*/) { return first_n(4); }
std::vector<int> recomputes(const Job& /*job*/) { return first_n(4); }
std::vector<int> two(const Job& /*job*/) { return first_n(2); }
std::vector<int> schedule_places(const Job& /*job*/) {
  return first_n(static_cast<int>(schedules().size()) + 1);
}

QString number_name(int value) { return QString::number(value); }
QString recompute_name_of(int value) { return qt(name_of(static_cast<RecomputeMode>(value))); }
QString schedule_name_of(int value) {
  if (value == 0) return QCoreApplication::translate("PlanKnobs", "by the stages");
  return qt(schedules()[static_cast<std::size_t>(value - 1)]->name);
}
QString switch_name(int value) {
  return value == 0 ? QCoreApplication::translate("PlanKnobs", "off")
                    : QCoreApplication::translate("PlanKnobs", "on");
}

// The number of chunks after the schedule has changed: the least of an interleaved schedule, and
// open for any other named one. Without a named schedule it stays and chooses the schedule.
std::optional<int> chunks_of(const PlanRequest& request) {
  if (request.schedule.empty()) return request.virtual_stages;
  const Schedule* schedule = find_schedule(request.schedule);
  const bool interleaves =
      schedule != nullptr && schedule->needs_chunks && schedule->route != Route::vee;
  return interleaves ? std::optional(2) : std::nullopt;
}

int schedule_place(const PlanRequest& request) {
  const auto all = schedules();
  const auto found = std::ranges::find_if(
      all, [&](const Schedule* schedule) { return schedule->name == request.schedule; });
  return found == all.end() ? 0 : static_cast<int>(found - all.begin()) + 1;
}

void set_schedule(PlanRequest& request, int value) {
  request.passes = nullptr;
  request.schedule =
      value == 0 ? std::string_view() : schedules()[static_cast<std::size_t>(value - 1)]->name;
  request.virtual_stages = chunks_of(request);
}

template <int PlanRequest::*member>
int get(const PlanRequest& request) {
  return request.*member;
}
template <int PlanRequest::*member>
void set(PlanRequest& request, int value) {
  request.*member = value;
}

template <int PlanRequest::*member>
constexpr PlanKnob degree(const char* key, const char* label, const char* help,
                          std::vector<int> (*candidates)(const Job&)) {
  return {key, label, help, get<member>, set<member>, candidates, number_name, true};
}

// NOLINTNEXTLINE(modernize-macro-to-enum): marks text for translation
#define TRAINYARD_KNOB_TEXT(text) QT_TRANSLATE_NOOP("PlanKnobs", text)

const PlanKnob kKnobs[] = {
    degree<&PlanRequest::tensor_parallel>(
        "tensor_parallel", TRAINYARD_KNOB_TEXT("Tensor parallel"),
        TRAINYARD_KNOB_TEXT("number of ranks that the matrices of each layer are split over"),
        degrees),
    {"sequence_parallel", TRAINYARD_KNOB_TEXT("Sequence parallel"),
     TRAINYARD_KNOB_TEXT(
         "whether norms and residuals are split along the sequence over the tensor-parallel ranks"),
     [](const PlanRequest& r) { return r.sequence_parallel.value_or(false) ? 1 : 0; },
     [](PlanRequest& r, int value) { r.sequence_parallel = value != 0; }, two, switch_name, false},
    degree<&PlanRequest::context_parallel>(
        "context_parallel", TRAINYARD_KNOB_TEXT("Context parallel"),
        TRAINYARD_KNOB_TEXT("number of ranks that each sequence is split over, attention included"),
        degrees),
    degree<&PlanRequest::pipeline_parallel>(
        "pipeline_parallel", TRAINYARD_KNOB_TEXT("Pipeline stages"),
        TRAINYARD_KNOB_TEXT("number of pipeline stages that the layers are divided into"), degrees),
    {"virtual_stages", TRAINYARD_KNOB_TEXT("Virtual stages"),
     TRAINYARD_KNOB_TEXT("number of chunks of layers that each pipeline stage holds"),
     [](const PlanRequest& r) { return r.virtual_stages.value_or(1); },
     [](PlanRequest& r, int value) { r.virtual_stages = value; }, layer_counts, number_name, true},
    degree<&PlanRequest::expert_parallel>(
        "expert_parallel", TRAINYARD_KNOB_TEXT("Expert parallel"),
        TRAINYARD_KNOB_TEXT("number of ranks that the experts of each layer are spread over"),
        expert_counts),
    degree<&PlanRequest::expert_tensor_parallel>(
        "expert_tensor_parallel", TRAINYARD_KNOB_TEXT("Expert tensor parallel"),
        TRAINYARD_KNOB_TEXT("number of ranks that the matrices of each expert are split over"),
        expert_degrees),
    degree<&PlanRequest::micro_batch>(
        "micro_batch", TRAINYARD_KNOB_TEXT("Micro-batch"),
        TRAINYARD_KNOB_TEXT("number of sequences that a rank processes in one pass"), batches),
    {"zero_stage", TRAINYARD_KNOB_TEXT("ZeRO stage"),
     TRAINYARD_KNOB_TEXT("what data-parallel ranks shard: 0 nothing, 1 optimizer states, 2 also "
                         "gradients, 3 also parameters"),
     [](const PlanRequest& r) { return r.zero_stage.value_or(0); },
     [](PlanRequest& r, int value) { r.zero_stage = value; }, zero_stages, number_name, true},
    {"recompute", TRAINYARD_KNOB_TEXT("Recompute"),
     TRAINYARD_KNOB_TEXT(
         "which activations the backward pass computes again instead of keeping them"),
     [](const PlanRequest& r) { return static_cast<int>(r.recompute.mode); },
     [](PlanRequest& r, int value) {
       r.recompute = {.mode = static_cast<RecomputeMode>(value)};
       r.recompute_per_stage.clear();
     },
     recomputes, recompute_name_of, false},
    {"schedule", TRAINYARD_KNOB_TEXT("Schedule"),
     TRAINYARD_KNOB_TEXT("order in which each pipeline stage runs its forward and backward passes"),
     schedule_place, set_schedule, schedule_places, schedule_name_of, false},
};

#undef TRAINYARD_KNOB_TEXT

}  // namespace

std::span<const PlanKnob> plan_knobs() { return kKnobs; }

PlanRequest turned(PlanRequest request, const PlanKnob& knob, int value) {
  if (knob.get(request) == value) return request;
  knob.set(request, value);
  request.data_parallel.reset();
  request.sharding_group.reset();
  request.layers_per_stage.clear();
  const std::string_view key = knob.key;
  if (key == "tensor_parallel") request.sequence_parallel.reset();
  if (key == "pipeline_parallel") request.recompute_per_stage.clear();
  const bool chooses_passes = key == "virtual_stages" || key == "pipeline_parallel";
  if (chooses_passes) {
    request.passes = nullptr;
    request.schedule.clear();
  }
  return request;
}

std::vector<int> legal_values(const PlanKnob& knob, const PlanRequest& request, const Job& job) {
  std::vector<int> values = knob.candidates(job);
  const int now = knob.get(request);
  if (std::ranges::find(values, now) == values.end()) values.push_back(now);
  std::erase_if(values, [&](int value) {
    if (value == now) return false;
    const PlanRequest other = turned(request, knob, value);
    return !plan_if_legal(other, job.model, job.cluster, job.training);
  });
  std::ranges::sort(values);
  return values;
}

}  // namespace trainyard
