// A step as tracks of slices that can be drawn at any zoom: for every rank and stream the places of
// its operations in the simulation's own times, in order. Nothing is copied, so ten million
// operations take five bytes each beside the simulation.
//
// What is drawn is found per track and per pixel: a slice wider than a pixel by itself, of narrower
// ones one in each pixel; the rest is jumped over by search. The work is that of the pixels, not of
// the slices.
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
  std::vector<std::uint32_t> slices;  // places in TimelineScene::times, by start
  // Of a measured track: the same operations as predicted, by start.
  std::vector<std::uint32_t> predicted;
  // Starts of some slices of either, for search; the scene fills them.
  std::vector<double> marks, predicted_marks;
  int stream = 0;  // its place among the tracks of its rank
};

// Pixels of a track that are drawn in one colour.
struct SliceRun {
  double x = 0, width = 0;
  SliceKind kind{};
  std::uint32_t slice = 0;  // the first one
  bool is_one = true;       // false: several slices, narrower than a pixel
};

struct TimelineView {
  double from = 0;       // picoseconds at the left edge
  double per_pixel = 1;  // picoseconds
  int width = 0;         // pixels
};

struct CurvePoint {
  double time = 0;   // picoseconds
  double value = 0;  // from then on
};
// The same as measured, or simulated, and as predicted for what was measured.
struct CurvePair {
  std::vector<CurvePoint> points, predicted;
};
// What a rank holds or moves over time.
struct TimelineCurve {
  QString title;       // in two lines, with the most there is
  const char* colour;  // key
  std::vector<CurvePoint> points;
  std::vector<CurvePoint> predicted;  // of what was measured; else none
  double most = 0;                    // of all that is drawn
  double limit = 0;                   // of the device; 0: unknown
};

// Operations of one name.
struct TimelineSum {
  QString name;
  std::int64_t operations = 0;
  Seconds time, predicted;  // the latter 0: unknown
  bool waits = false;       // mostly for a sender
};

class TimelineScene {
  Q_DECLARE_TR_FUNCTIONS(TimelineScene)
 public:
  // Keeps the simulation. The device's memory is drawn over the buffers, where it is known.
  static std::shared_ptr<const TimelineScene> of(std::shared_ptr<const StepSimulation> simulation,
                                                 Bytes device_memory = Bytes(0));
  // Keeps the trace. What was measured and what was predicted for it share a track.
  static std::shared_ptr<const TimelineScene> of(std::shared_ptr<const SavedTrace> trace);
  // Tracks over times that someone else keeps.
  TimelineScene(std::span<const TaskTimes> times, std::vector<SliceKind> kinds,
                std::vector<TimelineTrack> tracks);

  const std::vector<TimelineTrack>& tracks() const { return tracks_; }
  double end() const { return end_; }  // picoseconds
  const TaskTimes& times_of(std::uint32_t slice) const { return times_[slice]; }
  SliceKind kind_of(std::uint32_t slice) const { return kinds_[slice]; }
  bool is_critical(std::uint32_t slice) const { return !critical_.empty() && critical_[slice]; }

  // Of a measured track also what was predicted.
  std::vector<SliceRun> runs(const TimelineTrack& track, const TimelineView& view,
                             bool predicted = false) const;
  // The slice of a track at a time; nothing: none.
  const std::uint32_t* slice_at(const TimelineTrack& track, double time,
                                bool predicted = false) const;
  // Place of the track that has it; below 0: none.
  int track_of(std::uint32_t slice) const;

  // Those of all slices, in the order of SliceKind.
  const std::vector<SliceKind>& kinds() const { return kinds_drawn_; }
  static QString name_of(SliceKind kind);

  QString name_of(std::uint32_t slice) const;
  // Of several slices what they have in common: their kind. Empty: nothing that has a name.
  QString name_of(const SliceRun& run) const;
  QString details_of(std::uint32_t slice) const;
  // Memory and link load, where they are known.
  std::vector<TimelineCurve> curves_of(int rank) const;
  // Whether what was measured is beside what was predicted.
  bool compares() const { return compares_; }
  // Of a trace, the operations of all tracks by name, at most so many, the longest first; after
  // them what waits for a sender.
  std::vector<TimelineSum> sums(std::size_t most) const;
  // Of the operations whose names hold the text, the first that starts later; nothing: none.
  const std::uint32_t* find_after(const QString& text, double time) const;

 private:
  struct Source;
  void read_tracks();
  QString trace_details_of(std::uint32_t slice) const;
  // Of a measured slice the predicted one, or itself.
  std::uint32_t partner_of(std::uint32_t slice) const {
    return partners_.empty() ? slice : partners_[slice];
  }

  std::span<const TaskTimes> times_;
  std::vector<SliceKind> kinds_;  // of every slice
  std::vector<SliceKind> kinds_drawn_;
  std::vector<TimelineTrack> tracks_;
  std::vector<bool> critical_;
  std::vector<CurvePair> memory_;  // of each list, or owner of a trace
  std::vector<CurvePair> load_;    // of each owner of a trace
  Bytes device_memory_;            // 0: unknown
  std::shared_ptr<const SavedTrace> trace_;
  std::vector<std::uint32_t> partners_;   // see partner_of(); empty: each is its own
  std::shared_ptr<const Source> source_;  // nullptr: slices have no names
  double end_ = 0;
  bool compares_ = false;
};

}  // namespace trainyard
