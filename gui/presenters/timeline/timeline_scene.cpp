#include "gui/presenters/timeline/timeline_scene.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "gui/presenters/text.h"
#include "scenarios/read_trace.h"
#include "scenarios/text/readable.h"
#include "simulator/reading/critical_path.h"
#include "simulator/step.h"
#include "simulator/step/link_load.h"

namespace trainyard {
namespace {

// What slices of a kind are called together.
constexpr std::array<const char*, kSliceKinds> kKindNames = {
    QT_TRANSLATE_NOOP("TimelineScene", "forward"),
    QT_TRANSLATE_NOOP("TimelineScene", "backward"),
    QT_TRANSLATE_NOOP("TimelineScene", "weight gradients"),
    QT_TRANSLATE_NOOP("TimelineScene", "recomputation"),
    QT_TRANSLATE_NOOP("TimelineScene", "optimizer"),
    QT_TRANSLATE_NOOP("TimelineScene", "launches"),
    QT_TRANSLATE_NOOP("TimelineScene", "tensor-parallel communication"),
    QT_TRANSLATE_NOOP("TimelineScene", "context-parallel communication"),
    QT_TRANSLATE_NOOP("TimelineScene", "expert-parallel communication"),
    QT_TRANSLATE_NOOP("TimelineScene", "pipeline communication"),
    QT_TRANSLATE_NOOP("TimelineScene", "data-parallel communication"),
    QT_TRANSLATE_NOOP("TimelineScene", "copies"),
    QT_TRANSLATE_NOOP("TimelineScene", "receives and others")};

double most_of(const std::vector<CurvePoint>& points) {
  double most = 0;
  for (const CurvePoint& point : points) most = std::max(most, point.value);
  return most;
}

// The bytes that an operation reads and writes, and the rows and columns of its result.
QString buffers_text(const Program& program, const StepTask& what) {
  if (what.kind != StepTaskKind::operation) return {};
  Bytes read, written;
  const ProgramBuffer* result = nullptr;
  for (const Operand& operand : what.issued.operation->operands) {
    const ProgramBuffer& buffer = program.buffer(operand.buffer);
    if (operand.access != Access::create) read += buffer.bytes();
    if (operand.access != Access::read) written += buffer.bytes();
    if (operand.access == Access::create && result == nullptr) result = &buffer;
  }
  QString text =
      TimelineScene::tr("reads %1, writes %2").arg(qt(with_unit(read)), qt(with_unit(written)));
  if (result != nullptr) {
    text += TimelineScene::tr(": %1 × %2").arg(qt(count(result->rows)), qt(count(result->columns)));
  }
  return text;
}

// A moment of the step, with so many digits that the start and the end of something that takes
// `length` can be told apart, as a microsecond at 20 s.
QString moment_text(Seconds at, Seconds length) {
  constexpr int kUsual = 4;
  if (at <= Seconds(0) || length <= Seconds(0)) return qt(with_unit(at));
  const double places = std::log10(at.value()) - std::log10(length.value());
  const int digits = std::min(kUsual + static_cast<int>(std::floor(places)), 12);
  if (digits <= kUsual) return qt(with_unit(at));
  const bool in_seconds = at >= Seconds(1);
  const bool in_milliseconds = !in_seconds && at >= Seconds(1e-3);
  const double unit = in_seconds ? 1 : in_milliseconds ? 1e-3 : 1e-6;
  const char* name = in_seconds ? "s" : in_milliseconds ? "ms" : "µs";
  return QStringLiteral("%1 %2").arg(qt(number(at.value() / unit, digits)), qt(name));
}

double ps(Picoseconds time) { return static_cast<double>(time.count()); }

constexpr std::size_t kMarkEvery = 64;  // slices

// Slices of a track by start, and an array with the start of every 64th slice, its mark. A search
// uses the marks first, since the time of a slice is a random access to memory.
struct Row {
  std::span<const TaskTimes> times;
  const std::vector<std::uint32_t>& slices;
  const std::vector<double>& marks;

  double start(std::size_t place) const { return ps(times[slices[place]].start); }

  // The first mark at or after `place` whose time is `time` or later. It gallops (doubling steps,
  // then bisection), because the next pixel is usually near.
  std::size_t mark_from(std::size_t place, double time) const {
    std::size_t low = (place + kMarkEvery - 1) / kMarkEvery;
    std::size_t high = low;
    for (std::size_t step = 1; high < marks.size() && marks[high] < time; step *= 2) {
      low = high + 1;
      high += step;
    }
    const auto first = marks.begin() + static_cast<std::ptrdiff_t>(low);
    const auto last = marks.begin() + static_cast<std::ptrdiff_t>(std::min(high, marks.size()));
    return static_cast<std::size_t>(std::lower_bound(first, last, time) - marks.begin());
  }

  // The first place from `from` on whose slice starts at `time` or later, given that mark_from()
  // found `mark`.
  std::size_t before_mark(std::size_t mark, std::size_t from, double time) const {
    std::size_t low = std::max(from, mark == 0 ? 0 : (mark - 1) * kMarkEvery + 1);
    std::size_t high = std::min(mark * kMarkEvery, slices.size());
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (start(middle) < time) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  std::size_t starts_from(std::size_t from, double time) const {
    return before_mark(mark_from(from, time), from, time);
  }
};

Row row_of(std::span<const TaskTimes> times, const TimelineTrack& track, bool predicted) {
  return predicted ? Row{times, track.predicted, track.predicted_marks}
                   : Row{times, track.slices, track.marks};
}

std::vector<double> marks_of(std::span<const TaskTimes> times,
                             const std::vector<std::uint32_t>& slices) {
  std::vector<double> marks;
  marks.reserve(slices.size() / kMarkEvery + 1);
  for (std::size_t i = 0; i < slices.size(); i += kMarkEvery) {
    marks.push_back(ps(times[slices[i]].start));
  }
  return marks;
}

// The place of the slice to draw after a narrow one; the next pixel starts at time `next`. If a
// mark lies in the next pixel, its slice, which saves a search. Else the first slice that starts at
// `next` or later, unless the one before it is wider than a pixel: then that one.
std::size_t after_pixel(const Row& row, std::size_t at, double next, double per_pixel) {
  const std::size_t mark = row.mark_from(at + 1, next);
  if (mark < row.marks.size() && row.marks[mark] < next + per_pixel) return mark * kMarkEvery;
  const std::size_t place = row.before_mark(mark, at + 1, next);
  if (place <= at + 1) return place;
  const TaskTimes& last = row.times[row.slices[place - 1]];
  return ps(last.end) - ps(last.start) >= per_pixel ? place - 1 : place;
}

// Whether a slice on the critical path starts in a pixel, which begins at time `from`, or is one of
// those that are not drawn because of it: they end before the place `next`.
bool has_critical(const Row& row, const TimelineTrack& track, double from, double to,
                  std::size_t next) {
  const auto first = std::ranges::lower_bound(
      track.critical, from, {}, [&row](std::uint32_t place) { return row.start(place); });
  return first != track.critical.end() && (*first < next || row.start(*first) < to);
}

using StreamSlices = std::array<std::vector<std::uint32_t>, kStreams>;  // [stream] of one rank

// Adds a track for each stream with slices. `owner` names the rank, or the stage that it plays.
void add_tracks(std::span<const TaskTimes> times, const QString& owner, int rank,
                StreamSlices slices, std::vector<TimelineTrack>& tracks) {
  for (std::size_t stream = 0; stream < slices.size(); ++stream) {
    if (slices[stream].empty()) continue;
    std::ranges::stable_sort(slices[stream], {},
                             [&](std::uint32_t slice) { return times[slice].start; });
    const std::string of(name_of(static_cast<Stream>(stream)));
    const QString name = TimelineScene::tr("%1 · %2").arg(owner, TimelineScene::tr(of.c_str()));
    tracks.push_back({name, rank, stream == 0, std::move(slices[stream])});
  }
}

}  // namespace

// Finds the operation of a slice in the simulation.
struct TimelineScene::Source {
  std::shared_ptr<const StepSimulation> simulation;

  int rank_of(std::uint32_t slice) const {
    const auto& first = simulation->timeline.first;
    return static_cast<int>(std::ranges::upper_bound(first, slice) - first.begin()) - 1;
  }
  std::size_t list_of(int rank) const {
    return static_cast<std::size_t>(
        simulation->step.graph.ranks[static_cast<std::size_t>(rank)].list);
  }
  std::size_t place_of(std::uint32_t slice, int rank) const {
    return slice - simulation->timeline.first[static_cast<std::size_t>(rank)];
  }
  std::vector<CurvePoint> load_of(int rank) const {
    std::vector<CurvePoint> points;
    for (const LoadPoint& point : link_load(simulation->step, simulation->timeline, rank)) {
      points.push_back({ps(point.time), point.rate.value()});
    }
    return points;
  }
};

TimelineScene::TimelineScene(std::span<const TaskTimes> times, std::vector<SliceKind> kinds,
                             std::vector<TimelineTrack> tracks)
    : times_(times), kinds_(std::move(kinds)), tracks_(std::move(tracks)) {
  read_tracks();
}

// Finds the end of the scene, the kinds that occur in it, and the marks of each track.
void TimelineScene::read_tracks() {
  std::array<bool, kSliceKinds> is_drawn{};
  for (TimelineTrack& track : tracks_) {
    track.marks = marks_of(times_, track.slices);
    track.predicted_marks = marks_of(times_, track.predicted);
    for (const auto* slices : {&track.slices, &track.predicted}) {
      if (!slices->empty()) end_ = std::max(end_, ps(times_[slices->back()].end));
      for (const std::uint32_t slice : *slices) {
        is_drawn[static_cast<std::size_t>(kinds_[slice])] = true;
      }
    }
  }
  kinds_drawn_.clear();
  for (std::size_t kind = 0; kind < is_drawn.size(); ++kind) {
    if (is_drawn[kind]) kinds_drawn_.push_back(static_cast<SliceKind>(kind));
  }
}

std::shared_ptr<const TimelineScene> TimelineScene::of(
    std::shared_ptr<const StepSimulation> simulation, Bytes device_memory) {
  const StepGraph& step = simulation->step;
  const Timeline& timeline = simulation->timeline;
  std::vector<SliceKind> kinds(timeline.times.size());
  std::vector<TimelineTrack> tracks;
  for (std::size_t rank = 0; rank < step.graph.ranks.size(); ++rank) {
    const auto list = static_cast<std::size_t>(step.graph.ranks[rank].list);
    const std::vector<Task>& tasks = step.graph.lists[list].tasks;
    StreamSlices slices;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto slice = static_cast<std::uint32_t>(timeline.first[rank] + i);
      kinds[slice] = trainyard::kind_of(step.tasks[list][i]);
      const TaskTimes& times = timeline.times[slice];
      if (times.end > times.start)
        slices[static_cast<std::size_t>(tasks[i].stream)].push_back(slice);
    }
    const QString owner = step.plays_stages()
                              ? tr("stage %1").arg(list)
                              : tr("rank %1").arg(step.first_device(static_cast<int>(rank)));
    add_tracks(timeline.times, owner, static_cast<int>(rank), std::move(slices), tracks);
  }
  auto scene = std::make_shared<TimelineScene>(timeline.times, std::move(kinds), std::move(tracks));
  scene->mark_critical(*simulation);
  for (const StageUse& stage : simulation->stages) {
    std::vector<CurvePoint>& steps = scene->memory_.emplace_back().points;
    for (const MemoryPoint& point : stage.memory.points) {
      steps.push_back({ps(point.time), point.bytes.value()});
    }
  }
  scene->end_ = ps(timeline.makespan);
  scene->device_memory_ = device_memory;
  scene->source_ = std::make_shared<Source>(Source{std::move(simulation)});
  return scene;
}

void TimelineScene::mark_critical(const StepSimulation& simulation) {
  const Timeline& timeline = simulation.timeline;
  critical_.resize(timeline.times.size());
  for (const PathStep& at : critical_path(simulation.step, timeline)) {
    const std::size_t first = timeline.first[static_cast<std::size_t>(at.rank)];
    critical_[first + static_cast<std::size_t>(at.task)] = true;
  }
  for (TimelineTrack& track : tracks_) {
    for (std::size_t place = 0; place < track.slices.size(); ++place) {
      if (critical_[track.slices[place]]) {
        track.critical.push_back(static_cast<std::uint32_t>(place));
      }
    }
  }
}

std::vector<SliceRun> TimelineScene::runs(const TimelineTrack& track, const TimelineView& view,
                                          bool predicted) const {
  const Row row = row_of(times_, track, predicted);
  const std::vector<std::uint32_t>& slices = row.slices;
  std::vector<SliceRun> runs;
  const double to = view.from + view.per_pixel * view.width;
  std::size_t i = row.starts_from(0, view.from);
  if (i > 0) --i;  // the slice that starts before the view may reach into it
  while (i < slices.size()) {
    const TaskTimes& times = times_[slices[i]];
    if (ps(times.start) >= to) break;
    const double x = (ps(times.start) - view.from) / view.per_pixel;
    const double wide = (ps(times.end) - ps(times.start)) / view.per_pixel;
    const SliceKind kind = kinds_[slices[i]];
    if (wide >= 1 || x < 0) {
      const double left = std::max(x, 0.0);
      const double right = std::min(x + wide, static_cast<double>(view.width));
      if (right > left) {
        runs.push_back({left, right - left, kind, slices[i], true, is_critical(slices[i])});
      }
      ++i;
      continue;
    }
    const double pixel = std::floor(x);
    const double pixel_end = view.from + (pixel + 1) * view.per_pixel;
    const std::size_t next = after_pixel(row, i, pixel_end, view.per_pixel);
    const bool critical =
        !predicted && has_critical(row, track, pixel_end - view.per_pixel, pixel_end, next);
    const bool goes_on = !runs.empty() && runs.back().kind == kind &&
                         runs.back().is_critical == critical &&
                         std::abs(runs.back().x + runs.back().width - pixel) < 1e-6;
    if (goes_on) {
      runs.back().width += 1;
      runs.back().is_one = false;
    } else {
      runs.push_back({pixel, 1, kind, slices[i], next == i + 1, critical});
    }
    i = next;
  }
  return runs;
}

const std::uint32_t* TimelineScene::slice_at(const TimelineTrack& track, double time,
                                             bool predicted) const {
  const Row row = row_of(times_, track, predicted);
  const std::vector<std::uint32_t>& slices = row.slices;
  const std::size_t after = row.starts_from(0, time);
  const std::size_t upto = std::min(after + 1, slices.size());
  // Messages to several peers may overlap, so the last few slices are looked at.
  for (std::size_t i = upto; i > 0 && i + 4 > upto; --i) {
    const TaskTimes& times = times_[slices[i - 1]];
    if (ps(times.start) <= time && time < ps(times.end)) return &slices[i - 1];
  }
  return nullptr;
}

int TimelineScene::track_of(std::uint32_t slice) const {
  const double start = ps(times_[slice].start);
  for (std::size_t at = 0; at < tracks_.size(); ++at) {
    for (const bool predicted : {false, true}) {
      const Row row = row_of(times_, tracks_[at], predicted);
      for (std::size_t i = row.starts_from(0, start); i < row.slices.size(); ++i) {
        if (row.slices[i] == slice) return static_cast<int>(at);
        if (row.start(i) > start) break;
      }
    }
  }
  return -1;
}

QString TimelineScene::name_of(std::uint32_t slice) const {
  if (trace_) return qt(trace_->names[trace_->name[slice]]);
  if (!source_) return {};
  const int rank = source_->rank_of(slice);
  return qt(operation_name(
      source_->simulation->step.tasks[source_->list_of(rank)][source_->place_of(slice, rank)]));
}

QString TimelineScene::name_of(const SliceRun& run) const {
  if (run.is_one) return name_of(run.slice);
  return run.kind == SliceKind::other ? QString() : name_of(run.kind);
}

QString TimelineScene::name_of(SliceKind kind) {
  return tr(kKindNames[static_cast<std::size_t>(kind)]);
}

QString TimelineScene::shown_times(const TaskTimes& times) {
  const Seconds length = to_seconds(times.end - times.start);
  return tr("%1 from %2 to %3")
      .arg(qt(with_unit(length)), moment_text(to_seconds(times.start), length),
           moment_text(to_seconds(times.end), length));
}

QString TimelineScene::details_of(std::uint32_t slice) const {
  if (trace_) return trace_details_of(slice);
  QString text = shown_times(times_[slice]);
  if (!source_) return text;
  const int rank = source_->rank_of(slice);
  const std::size_t list = source_->list_of(rank);
  const std::size_t place = source_->place_of(slice, rank);
  const StepGraph& step = source_->simulation->step;
  const StepTask& what = step.tasks[list][place];
  const Task& task = step.graph.lists[list].tasks[place];
  QStringList lines = {qt(described(what)), text};
  if (task.call >= 0) {
    const Call& call = step.graph.calls[static_cast<std::size_t>(task.call)];
    lines.append(tr("message %1, alone %2")
                     .arg(qt(with_unit(call.message)),
                          qt(with_unit(step.alone[static_cast<std::size_t>(task.call)]))));
  }
  if (what.kind == StepTaskKind::operation && what.issued.operation->gemm.m > 0) {
    const GemmShape& gemm = what.issued.operation->gemm;
    lines.append(tr("GEMM %1 × %2 × %3").arg(gemm.m).arg(gemm.n).arg(gemm.k));
  }
  const QString buffers = buffers_text(*step.program, what);
  if (!buffers.isEmpty()) lines.append(buffers);
  const auto waits = step.graph.lists[list].dependencies_of(static_cast<std::int32_t>(place));
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < waits.size() && i < kShown; ++i) {
    lines.append(
        tr("after %1").arg(qt(described(step.tasks[list][static_cast<std::size_t>(waits[i])]))));
  }
  if (is_critical(slice)) lines.append(tr("on the critical path"));
  return lines.join(QLatin1Char('\n'));
}

std::vector<TimelineCurve> TimelineScene::curves_of(int rank) const {
  if (!source_ && !trace_) return {};
  const auto at = source_ ? source_->list_of(rank) : static_cast<std::size_t>(rank);
  const CurvePair load = source_ ? CurvePair{source_->load_of(rank), {}} : load_[at];
  std::vector<TimelineCurve> curves;
  const auto add = [&](const QString& title, const char* colour, const CurvePair& curve,
                       const auto& text) {
    const double most = most_of(curve.points);
    const double predicted = most_of(curve.predicted);
    if (most <= 0) return;
    QString head = tr("%1, rank %2\nat most %3").arg(title).arg(rank).arg(text(most));
    if (predicted > 0) head += tr("\npredicted %1").arg(text(predicted));
    curves.push_back({head, colour, curve.points, curve.predicted, std::max(most, predicted)});
  };
  const auto bytes = [](double value) { return qt(with_unit(Bytes(value))); };
  const auto rate = [](double value) { return qt(number(value * 1e-9) + " GB/s"); };
  if (at < memory_.size()) {
    // A simulation knows the program's buffers only, which are not all that a device holds.
    add(source_ ? tr("buffers") : tr("memory"), "activations", memory_[at], bytes);
    if (device_memory_ > Bytes(0) && !curves.empty()) {
      TimelineCurve& curve = curves.back();
      curve.limit = device_memory_.value();
      curve.most = std::max(curve.most, curve.limit);
      curve.title += tr("\nof %1").arg(bytes(curve.limit));
    }
  }
  add(tr("link load"), "tensor_parallel", load, rate);
  return curves;
}

const std::uint32_t* TimelineScene::find_after(const QString& text, double time) const {
  const std::uint32_t* found = nullptr;
  double earliest = end_ + 1;
  for (const TimelineTrack& track : tracks_) {
    const Row row = row_of(times_, track, false);
    for (std::size_t i = row.starts_from(0, std::nextafter(time, end_ + 1));
         i < row.slices.size() && row.start(i) < earliest; ++i) {
      if (!name_of(track.slices[i]).contains(text, Qt::CaseInsensitive)) continue;
      found = &track.slices[i];
      earliest = ps(times_[*found].start);
      break;
    }
  }
  return found;
}

}  // namespace trainyard
