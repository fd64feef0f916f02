// A saved trace as a timeline scene.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "gui/presenters/text.h"
#include "gui/presenters/timeline/timeline_scene.h"
#include "model/program/operation.h"
#include "model/units.h"
#include "scenarios/read_trace.h"
#include "scenarios/text/readable.h"
#include "simulator/graph/task_graph.h"

namespace trainyard {
namespace {

// The trace of a run has two processes for each rank, whose names end like this.
constexpr std::string_view kMeasured = " measured";
constexpr std::string_view kPredicted = " predicted";

// The name that the processes of a rank share: "rank 3" of "rank 3 measured".
std::string_view owner_of(std::string_view process) {
  for (const std::string_view end : {kMeasured, kPredicted}) {
    if (process.ends_with(end)) return process.substr(0, process.size() - end.size());
  }
  return process;
}

using Owners = std::map<std::string_view, int>;  // number of each, in the order of the file

Owners owners_of(const SavedTrace& trace) {
  Owners owners;
  int next = 0;
  for (const SavedTrack& track : trace.tracks) {
    if (owners.try_emplace(owner_of(track.process), next).second) ++next;
  }
  return owners;
}

std::vector<SliceKind> kinds_of(const SavedTrace& trace) {
  std::vector<SliceKind> kinds(trace.times.size()), of_names(trace.names.size());
  std::ranges::transform(trace.names, of_names.begin(), kind_of_operation);
  for (const SavedTrack& track : trace.tracks) {
    const std::optional<SliceKind> all = kind_of_track(track.name);
    for (const std::uint32_t span : track.spans) {
      kinds[span] = all.value_or(of_names[trace.name[span]]);
    }
  }
  return kinds;
}

// The track that predicts a measured one; nullptr: there is none.
const SavedTrack* prediction_of(const SavedTrace& trace, const SavedTrack& measured) {
  if (!measured.process.ends_with(kMeasured)) return nullptr;
  const std::string process = std::string(owner_of(measured.process)) + std::string(kPredicted);
  const auto found = std::ranges::find_if(trace.tracks, [&](const SavedTrack& track) {
    return track.process == process && track.name == measured.name;
  });
  return found == trace.tracks.end() ? nullptr : &*found;
}

// Pairs the n-th measured with the n-th predicted operation: both processes list the same ones, in
// the order of the program.
void pair_up(std::vector<std::uint32_t> measured, std::vector<std::uint32_t> predicted,
             std::vector<std::uint32_t>& partners) {
  if (measured.size() != predicted.size()) return;
  std::ranges::sort(measured);
  std::ranges::sort(predicted);
  for (std::size_t i = 0; i < measured.size(); ++i) partners[measured[i]] = predicted[i];
}

struct CounterKind {
  std::string_view name, unit;
  double scale = 1;
};
constexpr CounterKind kMemoryCounter = {"memory", "GiB", kGiB};
constexpr CounterKind kLoadCounter = {"link load", "GB/s", 1e9};

std::vector<CurvePoint> points_of(const SavedCounter& counter, double scale) {
  std::vector<CurvePoint> points;
  points.reserve(counter.points.size());
  for (const SavedPoint& point : counter.points) {
    points.push_back({static_cast<double>(point.time.count()), point.value * scale});
  }
  return points;
}

// The curves of one kind, [owner].
std::vector<CurvePair> curves_in(const SavedTrace& trace, const Owners& owners,
                                 const CounterKind& kind, bool compares) {
  std::vector<CurvePair> curves(owners.size());
  for (const SavedCounter& counter : trace.counters) {
    const auto owner = owners.find(owner_of(counter.process));
    if (owner == owners.end() || counter.name != kind.name || counter.unit != kind.unit) continue;
    CurvePair& curve = curves[static_cast<std::size_t>(owner->second)];
    const bool is_predicted = compares && counter.process.ends_with(kPredicted);
    (is_predicted ? curve.predicted : curve.points) = points_of(counter, kind.scale);
  }
  return curves;
}

// The number of the stream with this name; a track of any other name comes after all streams.
int stream_of(std::string_view track) {
  int stream = 0;
  while (stream < kStreams && name_of(static_cast<Stream>(stream)) != track) ++stream;
  return stream;
}

// The time of a receive is mostly waiting for the sender.
bool is_receive(std::string_view operation) {
  return operation.starts_with(name_of(OperationKind::receive));
}

std::vector<const SavedTrack*> predictions_in(const SavedTrace& trace) {
  std::vector<const SavedTrack*> found;
  for (const SavedTrack& saved : trace.tracks) {
    if (const SavedTrack* predicted = prediction_of(trace, saved)) found.push_back(predicted);
  }
  return found;
}

}  // namespace

std::shared_ptr<const TimelineScene> TimelineScene::of(std::shared_ptr<const SavedTrace> trace) {
  const Owners owners = owners_of(*trace);
  std::vector<TimelineTrack> tracks;
  const std::vector<const SavedTrack*> beneath = predictions_in(*trace);  // get no own track
  std::vector<std::uint32_t> partners(beneath.empty() ? 0 : trace->times.size());
  for (std::uint32_t i = 0; i < partners.size(); ++i) partners[i] = i;
  for (const SavedTrack& saved : trace->tracks) {
    if (std::ranges::find(beneath, &saved) != beneath.end()) continue;
    const SavedTrack* predicted = prediction_of(*trace, saved);
    const std::string_view owner = predicted != nullptr ? owner_of(saved.process) : saved.process;
    tracks.push_back({.name = tr("%1 · %2").arg(qt(owner), qt(saved.name)),
                      .rank = owners.at(owner_of(saved.process)),
                      .is_compute = saved.name == "compute",
                      .slices = saved.spans,
                      .predicted = {},
                      .stream = stream_of(saved.name),
                      .is_prediction = !beneath.empty() && saved.process.ends_with(kPredicted)});
    if (predicted == nullptr) continue;
    tracks.back().predicted = predicted->spans;
    pair_up(saved.spans, predicted->spans, partners);
  }
  // Within a rank, tracks with both measured and predicted slices come first, then by stream as in
  // a simulation. The order in the file does not matter.
  std::ranges::stable_sort(tracks, {}, [](const TimelineTrack& track) {
    return std::tuple(track.rank, track.predicted.empty(), track.stream);
  });
  auto scene = std::make_shared<TimelineScene>(trace->times, kinds_of(*trace), std::move(tracks));
  scene->memory_ = curves_in(*trace, owners, kMemoryCounter, !beneath.empty());
  scene->load_ = curves_in(*trace, owners, kLoadCounter, !beneath.empty());
  scene->compares_ = !beneath.empty();
  scene->partners_ = std::move(partners);
  scene->trace_ = std::move(trace);
  return scene;
}

QString TimelineScene::trace_details_of(std::uint32_t slice) const {
  const auto shown = [this](std::uint32_t of) { return shown_times(times_[of]); };
  QStringList lines = {name_of(slice), shown(slice)};
  if (partner_of(slice) != slice) lines.append(tr("predicted %1").arg(shown(partner_of(slice))));
  return lines.join(QLatin1Char('\n'));
}

std::vector<TimelineSum> TimelineScene::sums(std::size_t most) const {
  if (!trace_) return {};
  std::vector<TimelineSum> by_name(trace_->names.size());
  for (const TimelineTrack& track : tracks_) {
    if (track.is_prediction) continue;
    for (const std::uint32_t slice : track.slices) {
      TimelineSum& sum = by_name[trace_->name[slice]];
      const std::uint32_t partner = partner_of(slice);
      ++sum.operations;
      sum.time += to_seconds(times_[slice].end - times_[slice].start);
      if (partner == slice) continue;
      sum.predicted += to_seconds(times_[partner].end - times_[partner].start);
    }
  }
  for (std::size_t i = 0; i < by_name.size(); ++i) {
    by_name[i].name = qt(trace_->names[i]);
    by_name[i].waits = is_receive(trace_->names[i]);
  }
  // Names of counters, and of operations that were only predicted, have none.
  std::erase_if(by_name, [](const TimelineSum& sum) { return sum.operations == 0; });
  std::ranges::stable_sort(by_name, std::greater<>(),
                           [](const TimelineSum& sum) { return std::pair(!sum.waits, sum.time); });
  by_name.resize(std::min(most, by_name.size()));
  return by_name;
}

}  // namespace trainyard
