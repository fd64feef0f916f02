// What the result file of a sweep holds so far: its first points (at most 100,000) and the keys
// that vary. cells_of() lays a figure out over two of the keys, for a heat map or lines.
#pragma once

#include <QString>
#include <QStringList>
#include <array>
#include <atomic>
#include <filesystem>
#include <vector>

#include "model/expected.h"
#include "scenarios/sweep/results/point_row.h"

namespace trainyard {

struct PointsKey {
  QString name;
  QStringList values;
  // [value]: position along an axis. Values that the sweep lists keep its order, others go by size.
  std::vector<int> rank;
  // Names along an axis, at most 48. If there are more values, neighbours share one: "1 – 4".
  QStringList groups;

  int group_of(int value) const;
};

struct SweptPoint {
  PointRow row;
  std::vector<int> places;  // [key]: index of the point's value in PointsKey::values
};

struct SweepPoints {
  QString name;
  std::vector<PointsKey> keys;
  std::vector<SweptPoint> points;        // the points that were read, in order
  std::vector<std::size_t> figures;      // the figures that at least one of these points has
  std::array<std::int64_t, 3> counts{};  // [PointStatus]: points in the file
  std::int64_t asked = 0;                // points of the whole sweep
  std::int64_t answered = 0;             // includes points that its conditions leave out

  // How many points of the file were not read; those that were are the first ones.
  std::int64_t unread() const;
  QString summary() const;
};

// When it is told to stop, it returns what it has read by then.
Expected<SweepPoints> read_points(const std::filesystem::path& file, const std::atomic<bool>& stop);

// Which value a cell shows if it has several points.
enum class CellValue { least, mean, most };

struct CellChoice {
  int x = 0, y = -1;  // indices of keys; y = −1: one row
  std::size_t figure = 0;
  CellValue value = CellValue::least;
  bool only_fitting = true;
};

struct SweepCells {
  QStringList x, y;                         // y empty: one row
  std::vector<std::vector<double>> values;  // [y][x]; NaN: no point of the cell has the figure
  // [y][x]: the point with the value, or the first of the cell; −1: the cell has no point yet.
  std::vector<std::vector<int>> points;
};

// Requires: the keys and the figure of `choice` are those of `points`.
SweepCells cells_of(const SweepPoints& points, const CellChoice& choice);

}  // namespace trainyard
