#include "gui/presenters/sweep/sweep_points.h"

#include <QCoreApplication>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "gui/presenters/text.h"
#include "scenarios/json/file.h"
#include "scenarios/json/quantity.h"
#include "scenarios/sweep/results/result_file.h"
#include "scenarios/sweep/swept_keys.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

constexpr std::size_t kMostPoints = 100'000;  // more are for `trainyard report`
constexpr int kMostGroups = 48;               // as many as an axis has room for

QString translated(const char* text) { return QCoreApplication::translate("SweepPoints", text); }

// The size by which values are ordered: a quantity in base units, else the number at the start of
// the text. A text without such a number is infinite, so that it is last.
double size_of_value(const std::string& text) {
  if (const auto quantity = quantity_of_some_kind(text)) return *quantity;
  double value = std::numeric_limits<double>::infinity();
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Values that the sweep lists keep its order; those of ranges and CSV files are ordered by size.
std::vector<int> order_of_values(const SweptKey& key) {
  std::vector<int> order(key.values.size());
  std::iota(order.begin(), order.end(), 0);
  if (key.is_listed) return order;
  std::vector<double> sizes;
  sizes.reserve(key.values.size());
  for (const std::string& value : key.values) sizes.push_back(size_of_value(value));
  const auto size_of = [&sizes](int place) { return sizes[static_cast<std::size_t>(place)]; };
  std::ranges::stable_sort(order, {}, size_of);
  return order;
}

PointsKey shown_key(const SweptKey& key) {
  PointsKey shown{.name = qt(key.name), .values = {}, .rank = {}, .groups = {}};
  for (const std::string& value : key.values) {
    shown.values.append(value.empty() ? translated("not there") : qt(value));
  }
  const std::vector<int> order = order_of_values(key);
  shown.rank.resize(order.size());
  for (int i = 0; std::cmp_less(i, order.size()); ++i) {
    shown.rank[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = i;
  }
  shown.groups.resize(std::min<qsizetype>(shown.values.size(), kMostGroups));
  QStringList last(shown.groups.size());
  for (const int place : order) {
    const int group = shown.group_of(place);
    if (shown.groups[group].isNull()) {
      shown.groups[group] = shown.values[place];
    } else {
      last[group] = QStringLiteral(" – ") + shown.values[place];
    }
  }
  for (qsizetype i = 0; i < last.size(); ++i) shown.groups[i] += last[i];
  return shown;
}

Expected<void> read_counts(ResultFile& results, SweepPoints& found) {
  const auto counts = results.counts();
  if (!counts) return tl::unexpected(counts.error());
  std::ranges::copy(counts->counts, found.counts.begin());
  const auto sessions = results.sessions();
  if (!sessions) return tl::unexpected(sessions.error());
  for (const SessionRecord& session : *sessions) found.answered += session.points;
  return {};
}

std::vector<std::size_t> figures_of(const std::vector<SweptPoint>& points) {
  std::vector<std::size_t> figures;
  for (std::size_t figure = 0; figure < kFigures; ++figure) {
    const auto has_it = [figure](const SweptPoint& point) {
      return !std::isnan(point.row.figures[figure]);
    };
    if (std::ranges::any_of(points, has_it)) figures.push_back(figure);
  }
  return figures;
}

Expected<void> read_rows(ResultFile& results, const Sweep& sweep, const std::atomic<bool>& stop,
                         SweepPoints& found) {
  SweptKeys keys(sweep);
  const auto use = [&](const PointRow& row) {
    found.points.push_back({row, keys.places(row.point)});
    found.points.back().row.overrides.clear();  // `places` holds the same
    return !stop;
  };
  auto read = results.each({.limit = kMostPoints}, use);
  if (!read) return read;
  found.figures = figures_of(found.points);
  for (const SweptKey& key : keys.keys()) found.keys.push_back(shown_key(key));
  return {};
}

Expected<SweepPoints> read_all(ResultFile& results, const std::atomic<bool>& stop) {
  const auto sweep =
      sweep_of_text(results.said("document"), results.said("csv"), results.said("file"));
  if (!sweep) return tl::unexpected(sweep.error());
  SweepPoints found{.name = qt(sweep->name), .asked = sweep->points};
  auto read = results.check_points(sweep->points)
                  .and_then([&] { return read_counts(results, found); })
                  .and_then([&] { return read_rows(results, *sweep, stop, found); });
  return read ? Expected<SweepPoints>(std::move(found)) : tl::unexpected(read.error());
}

// The value of a cell, to which its points are added one by one.
struct Folded {
  double value = std::numeric_limits<double>::quiet_NaN();
  int point = -1;
  int count = 0;

  void add(double next, int at, CellValue choice) {
    if (point < 0) point = at;
    if (std::isnan(next)) return;
    ++count;
    const bool is_new = count == 1 || (choice == CellValue::least && next < value) ||
                        (choice == CellValue::most && next > value);
    if (choice == CellValue::mean) {
      value = count == 1 ? next : value + (next - value) / count;
    } else if (is_new) {
      value = next;
    }
    if (count == 1 || (is_new && choice != CellValue::mean)) point = at;
  }
};

int group_at(const SweepPoints& points, int key, const SweptPoint& point) {
  if (key < 0) return 0;
  const auto at = static_cast<std::size_t>(key);
  return points.keys[at].group_of(point.places[at]);
}

}  // namespace

int PointsKey::group_of(int value) const {
  return static_cast<int>(std::int64_t{rank[static_cast<std::size_t>(value)]} * groups.size() /
                          values.size());
}

std::int64_t SweepPoints::unread() const {
  return std::accumulate(counts.begin(), counts.end(), -static_cast<std::int64_t>(points.size()));
}

QString SweepPoints::summary() const {
  const auto of = [this](PointStatus status) {
    return qt(count(counts[static_cast<std::size_t>(status)]));
  };
  QString text = translated("%1%2 of %3 points: %4 fit, %5 do not fit, %6 refused")
                     .arg(name.isEmpty() ? QString() : name + QStringLiteral(": "),
                          qt(count(answered)), qt(count(asked)), of(PointStatus::done),
                          of(PointStatus::too_large), of(PointStatus::refused));
  const std::int64_t rows = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (rows < answered) {
    text += translated(", %1 left out by conditions").arg(qt(count(answered - rows)));
  }
  if (unread() > 0) {
    text += translated("; the first %1 are shown")
                .arg(qt(count(static_cast<std::int64_t>(points.size()))));
  }
  return text;
}

Expected<SweepPoints> read_points(const std::filesystem::path& file,
                                  const std::atomic<bool>& stop) {
  auto results = ResultFile::open(file);
  if (!results) return tl::unexpected(results.error());
  auto found = read_all(*results, stop);
  if (found) return found;
  // The message begins with the name of the file, whatever is wrong in it.
  const Error& error = found.error();
  const std::string name = shown_path(file);
  if (error.where == name) return found;
  return failure(name, error.where.empty() ? error.message : error.where + ": " + error.message);
}

SweepCells cells_of(const SweepPoints& points, const CellChoice& choice) {
  SweepCells cells;
  cells.x = points.keys[static_cast<std::size_t>(choice.x)].groups;
  if (choice.y >= 0) cells.y = points.keys[static_cast<std::size_t>(choice.y)].groups;
  const auto wide = static_cast<std::size_t>(cells.x.size());
  const std::size_t high = choice.y < 0 ? 1 : static_cast<std::size_t>(cells.y.size());
  std::vector<Folded> folded(wide * high);
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    const SweptPoint& point = points.points[i];
    const auto column = static_cast<std::size_t>(group_at(points, choice.x, point));
    const auto row = static_cast<std::size_t>(group_at(points, choice.y, point));
    const bool counts = !choice.only_fitting || point.row.status == PointStatus::done;
    const double value =
        counts ? point.row.figures[choice.figure] : std::numeric_limits<double>::quiet_NaN();
    folded[row * wide + column].add(value, static_cast<int>(i), choice.value);
  }
  cells.values.assign(high, std::vector<double>(wide));
  cells.points.assign(high, std::vector<int>(wide));
  for (std::size_t i = 0; i < folded.size(); ++i) {
    cells.values[i / wide][i % wide] = folded[i].value;
    cells.points[i / wide][i % wide] = folded[i].point;
  }
  return cells;
}

}  // namespace trainyard
