// What a result file has so far: its points, the keys that vary, and any figure over two of them as
// cells, which a heat map and lines are drawn from.
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
  std::vector<int> rank;  // of each value along an axis
  QStringList groups;     // what an axis has room for: neighbours of many values share one

  int group_of(int value) const;
};

struct SweptPoint {
  PointRow row;
  std::vector<int> places;  // of its value, for each key
};

struct SweepPoints {
  QString name;
  std::vector<PointsKey> keys;
  std::vector<SweptPoint> points;        // the first ones; in order
  std::vector<std::size_t> figures;      // that some point has
  std::array<std::int64_t, 3> counts{};  // in the file, by PointStatus
  std::int64_t asked = 0;                // of the sweep
  std::int64_t answered = 0;             // those that its conditions leave out are counted

  // Above 0: the file has more points than were read, which are the first ones.
  std::int64_t unread() const;
  QString summary() const;
};

// Stops early, with what it has.
Expected<SweepPoints> read_points(const std::filesystem::path& file, const std::atomic<bool>& stop);

// Which of several points in a cell.
enum class CellValue { least, mean, most };

struct CellChoice {
  int x = 0, y = -1;  // keys; y −1: none
  std::size_t figure = 0;
  CellValue value = CellValue::least;
  bool only_fitting = true;
};

struct SweepCells {
  QStringList x, y;                         // y empty: one row
  std::vector<std::vector<double>> values;  // [y][x]; NaN: nothing has the figure
  // The point that has the value, or is the first of several; −1: no point was answered.
  std::vector<std::vector<int>> points;
};

// Requires: keys and a figure of the points.
SweepCells cells_of(const SweepPoints& points, const CellChoice& choice);

}  // namespace trainyard
