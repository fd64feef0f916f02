// A step as tracks of slices that can be drawn at any zoom. A track is a stream of a rank, a slice
// one operation on it. A track stores indices into the times of the simulation and copies no times,
// so ten million operations take about five bytes each beside the simulation.
//
// runs() finds what to draw: every slice wider than a pixel, and one narrower slice for each pixel
// that such slices touch. A search jumps over the others, so the work grows with the number of
// pixels, not of slices.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gui/presenters/timeline/slice_kind.h"
#include "model/units.h"
#include "simulator/timeline.h"

namespace trainyard {

struct SavedTrace;
struct StepSimulation;

struct TimelineTrack {
  QString name;
  int rank = 0;
  bool is_compute = false;
  std::vector<std::uint32_t> slices;  // indices into the scene's times, by start
  // For a measured track: the predicted times of the same operations, also by start.
  std::vector<std::uint32_t> predicted;
  // Starts of every 64th slice of `slices` and `predicted`, for search; the scene fills them.
  std::vector<double> marks, predicted_marks;
  std::vector<std::uint32_t> critical;  // places in `slices` of those on the critical path
  int stream = 0;                       // orders the tracks of a rank that a trace holds
  bool is_prediction = false;           // of a run: nothing on it was measured
};

// Neighbouring pixels of a track that are drawn in one colour.
struct SliceRun {
  double x = 0, width = 0;
  SliceKind kind{};
  std::uint32_t slice = 0;   // the first slice of the run
  bool is_one = true;        // false: the run stands for several slices narrower than a pixel
  bool is_critical = false;  // every pixel of the run has a slice on the critical path
};

struct TimelineView {
  double from = 0;       // picoseconds at the left edge
  double per_pixel = 1;  // picoseconds per pixel
  int width = 0;         // pixels
};

struct CurvePoint {
  double time = 0;   // picoseconds
  double value = 0;  // from this time to the next point
};
// A quantity as it was measured or simulated, and as it was predicted for a measured run.
struct CurvePair {
  std::vector<CurvePoint> points, predicted;
};
// The memory that a rank holds, or the load of its links, over time.
struct TimelineCurve {
  QString title;       // several lines, with the largest value
  const char* colour;  // key of colour_of()
  std::vector<CurvePoint> points;
  std::vector<CurvePoint> predicted;  // empty if nothing was measured
  double most = 0;                    // upper end of the scale: the largest value or the limit
  double limit = 0;                   // the device's memory; 0: unknown
};

// All operations of one name, added up.
struct TimelineSum {
  QString name;
  std::int64_t operations = 0;
  Seconds time, predicted;  // predicted = 0: unknown
  bool waits = false;       // a receive, whose time is mostly waiting for the sender
};

class TimelineScene {
  Q_DECLARE_TR_FUNCTIONS(TimelineScene)
 public:
  // The scene keeps the simulation alive. `device_memory` is drawn as the limit of the buffers; 0
  // if it is unknown.
  static std::shared_ptr<const TimelineScene> of(std::shared_ptr<const StepSimulation> simulation,
                                                 Bytes device_memory = Bytes(0));
  // The scene keeps the trace alive. Measured and predicted operations of a stream share a track.
  static std::shared_ptr<const TimelineScene> of(std::shared_ptr<const SavedTrace> trace);
  // Requires: `times` outlive the scene.
  TimelineScene(std::span<const TaskTimes> times, std::vector<SliceKind> kinds,
                std::vector<TimelineTrack> tracks);

  const std::vector<TimelineTrack>& tracks() const { return tracks_; }
  double end() const { return end_; }  // picoseconds
  const TaskTimes& times_of(std::uint32_t slice) const { return times_[slice]; }
  SliceKind kind_of(std::uint32_t slice) const { return kinds_[slice]; }
  bool is_critical(std::uint32_t slice) const { return !critical_.empty() && critical_[slice]; }

  // What to draw of a track in the view: its slices, or its predicted ones.
  std::vector<SliceRun> runs(const TimelineTrack& track, const TimelineView& view,
                             bool predicted = false) const;
  // The slice of a track at a time; nullptr: there is none.
  const std::uint32_t* slice_at(const TimelineTrack& track, double time,
                                bool predicted = false) const;
  // Index of the track that holds the slice; −1: none does.
  int track_of(std::uint32_t slice) const;

  // The kinds that some slice of a track has, in the order of SliceKind.
  const std::vector<SliceKind>& kinds() const { return kinds_drawn_; }
  static QString name_of(SliceKind kind);

  QString name_of(std::uint32_t slice) const;
  // The name of the run's slice, or, if it has several, of their kind. Empty if the kind is
  // `other`.
  QString name_of(const SliceRun& run) const;
  QString details_of(std::uint32_t slice) const;
  // The rank's memory and link load over time; a curve that is unknown is left out.
  std::vector<TimelineCurve> curves_of(int rank) const;
  // Whether a track holds both measured and predicted operations.
  bool compares() const { return compares_; }
  // The operations of a trace, added up by name: at most `most` names, the longest first. Receives
  // come after all others, since they mostly wait. Of a run, those that were measured. Empty for a
  // simulation.
  std::vector<TimelineSum> sums(std::size_t most) const;
  // The first operation that starts after `time` and has the text in its name; nullptr: none.
  const std::uint32_t* find_after(const QString& text, double time) const;

 private:
  struct Source;
  void read_tracks();
  void mark_critical(const StepSimulation& simulation);
  QString trace_details_of(std::uint32_t slice) const;
  static QString shown_times(const TaskTimes& times);
  // The predicted slice of a measured one; any other slice is its own partner.
  std::uint32_t partner_of(std::uint32_t slice) const {
    return partners_.empty() ? slice : partners_[slice];
  }

  std::span<const TaskTimes> times_;
  std::vector<SliceKind> kinds_;  // [slice]
  std::vector<SliceKind> kinds_drawn_;
  std::vector<TimelineTrack> tracks_;
  std::vector<bool> critical_;
  std::vector<CurvePair> memory_;  // [task list of the simulation], or [rank of the trace]
  std::vector<CurvePair> load_;    // [rank of the trace]
  Bytes device_memory_;            // 0: unknown
  std::shared_ptr<const SavedTrace> trace_;
  std::vector<std::uint32_t> partners_;   // [slice], see partner_of(); empty: nothing is compared
  std::shared_ptr<const Source> source_;  // nullptr: slices have no names
  double end_ = 0;
  bool compares_ = false;
};

}  // namespace trainyard
