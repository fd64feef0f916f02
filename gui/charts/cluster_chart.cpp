#include "gui/charts/cluster_chart.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "gui/charts/colours.h"
#include "gui/presenters/answer.h"

namespace trainyard {
namespace {

constexpr double kRackGap = 8;   // pixels between racks
constexpr double kRackEdge = 2;  // between a rack's frame and its devices
constexpr double kLargestCell = 60;
constexpr int kScale = 120;               // pixels of the colour scale of loads
constexpr std::size_t kMostLinks = 6000;  // more links would be slow and look like a grey field

// Up to eight places get colours around the colour circle, so that neighbours differ clearly; more
// places share a gradient.
QColor place_colour(int place, int places, bool dark) {
  constexpr int kTurn = 8;  // places that a glance can tell apart
  const double hue =
      places <= kTurn ? double(place) / kTurn : double(place) / std::max(1, places - 1) * 0.83;
  const double light = dark ? 0.72 : 0.86;
  return QColor::fromHsvF(static_cast<float>(hue), 0.62F,
                          static_cast<float>(place % 2 == 0 ? light : light - 0.12));
}

// The colour of a load: from grey over amber to red.
QColor load_colour(double share, const QPalette& palette) {
  const QColor none = grid_colour(palette).darker(is_dark(palette) ? 70 : 115);
  const QColor half = colour_of("context_parallel", is_dark(palette));
  const QColor full = alarm_colour(palette);
  const double at = 2 * std::clamp(share, 0.0, 1.0);
  const QColor& from = at < 1 ? none : half;
  const QColor& to = at < 1 ? half : full;
  const double part = at < 1 ? at : at - 1;
  const auto mixed = [part](int a, int b) { return static_cast<int>(a + (b - a) * part); };
  return QColor(mixed(from.red(), to.red()), mixed(from.green(), to.green()),
                mixed(from.blue(), to.blue()));
}

double spines_bottom(const QWidget& chart) { return chart.fontMetrics().height() * 1.4; }

// The distance of a point from the line segment between two others.
double distance_from_line(QPointF point, QPointF from, QPointF to) {
  const QPointF along = to - from;
  const double length = QPointF::dotProduct(along, along);
  const double at = length > 0 ? QPointF::dotProduct(point - from, along) / length : 0;
  const QPointF off = point - (from + std::clamp(at, 0.0, 1.0) * along);
  return std::hypot(off.x(), off.y());
}

QString load_text(double load) { return QString::number(load, 'g', 6); }

QColor share_colour(double share, const QPalette& palette) {
  if (share > 1) return alarm_colour(palette);
  const QColor full = colour_of("compute", is_dark(palette));
  const QColor none = grid_colour(palette);
  const auto mixed = [share](int a, int b) { return static_cast<int>(a + (b - a) * share); };
  return QColor(mixed(none.red(), full.red()), mixed(none.green(), full.green()),
                mixed(none.blue(), full.blue()));
}

}  // namespace

ClusterChart::ClusterChart(QWidget* parent) : Chart(parent) {
  setAccessibleName(tr("The cluster and what each device does"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void ClusterChart::set_map(std::shared_ptr<const ClusterMap> map) {
  map_ = std::move(map);
  set_load(nullptr);
  place_of_node_.clear();
  if (map_) {
    place_of_node_.resize(static_cast<std::size_t>(map_->devices() / map_->devices_per_node()));
    for (int rack = 0; rack < static_cast<int>(map_->racks().size()); ++rack) {
      const std::vector<int>& nodes = map_->racks()[static_cast<std::size_t>(rack)].nodes;
      for (int place = 0; place < static_cast<int>(nodes.size()); ++place) {
        place_of_node_[static_cast<std::size_t>(nodes[static_cast<std::size_t>(place)])] = {rack,
                                                                                            place};
      }
    }
    setAccessibleDescription(map_->summary());
  }
  place_racks();
  select(map_ && selected_ < map_->ranks() ? selected_ : -1);
}

void ClusterChart::set_load(std::shared_ptr<const ClusterLoad> load) {
  load_ = std::move(load);
  links_by_load_.resize(map_ ? std::min(map_->links().size(), kMostLinks) : 0);
  std::iota(links_by_load_.begin(), links_by_load_.end(), std::size_t{0});
  if (load_) {
    std::ranges::stable_sort(links_by_load_, {},
                             [this](std::size_t link) { return load_->links[link]; });
  }
  update();
}

void ClusterChart::set_colour(MapColour colour) {
  colour_ = colour;
  select(selected_);
}

void ClusterChart::select(int rank) {
  selected_ = rank;
  members_ = map_ && rank >= 0 ? map_->members(rank, colour_) : std::vector<int>();
  update();
}

QString ClusterChart::data_text() const {
  QString text = tr("rank\tnode\tdevice\tstage\ttensor\tcontext\treplica\texperts\tmemory share"
                    "\tload of the busiest link") +
                 QLatin1Char('\n');
  if (!map_) return text;
  for (int rank = 0; rank < map_->ranks(); ++rank) {
    text += QStringLiteral("%1\t%2\t%3")
                .arg(rank)
                .arg(map_->node_of(rank))
                .arg(rank % map_->devices_per_node());
    for (const MapColour colour : {MapColour::stage, MapColour::tensor, MapColour::context,
                                   MapColour::data, MapColour::expert}) {
      text += QLatin1Char('\t') + QString::number(map_->place_of(rank, colour));
    }
    text += QLatin1Char('\t') + QString::number(map_->memory_share(rank), 'g', 6) +
            QLatin1Char('\t') +
            (load_ ? load_text(load_->devices[static_cast<std::size_t>(rank)]) : QString()) +
            QLatin1Char('\n');
  }
  text += QLatin1Char('\n') + tr("link\tcables\tbandwidth, GB/s\tload\tload of the busiest cable") +
          QLatin1Char('\n');
  for (std::size_t i = 0; i < map_->links().size(); ++i) {
    const MapLink& link = map_->links()[i];
    text += QStringLiteral("%1\t%2\t%3\t%4\t%5\n")
                .arg(map_->link_name(i))
                .arg(link.cables)
                .arg(link.bandwidth.value() * 1e-9, 0, 'g', 6)
                .arg(load_ ? load_text(load_->links[i]) : QString(),
                     load_ ? load_text(load_->busiest[i]) : QString());
  }
  return text;
}

// Chooses the grid of racks in which devices are drawn largest.
void ClusterChart::place_racks() {
  racks_.clear();
  if (!map_ || map_->racks().empty()) return;
  std::size_t most = 1;
  for (const MapRack& rack : map_->racks()) most = std::max(most, rack.nodes.size());
  columns_of_rack_ = static_cast<int>(most);
  const int rows_of_rack = map_->devices_per_node();
  const auto racks = static_cast<int>(map_->racks().size());
  const double top = 2.2 * fontMetrics().height() + kRackGap;
  const double bottom = 2.0 * fontMetrics().height();
  int best_columns = 1;
  double best = 0;
  const auto cell = [&](int columns) {
    const int rows = (racks + columns - 1) / columns;
    const double wide = ((width() - kRackGap) / columns - kRackGap) / columns_of_rack_;
    const double high = ((height() - top - bottom) / rows - kRackGap) / rows_of_rack;
    return std::pair(std::min(wide, kLargestCell), std::min(high, kLargestCell));
  };
  for (int columns = 1; columns <= racks; ++columns) {
    const auto [wide, high] = cell(columns);
    const double smaller = std::min(wide, high);
    if (smaller <= best) continue;
    best = smaller;
    best_columns = columns;
  }
  std::tie(cell_wide_, cell_high_) = cell(best_columns);
  const double wide = cell_wide_ * columns_of_rack_ + kRackGap;
  const double high = cell_high_ * rows_of_rack + kRackGap;
  const double left = std::max(0.0, (width() - wide * best_columns) / 2);
  for (int rack = 0; rack < racks; ++rack) {
    const int row = rack / best_columns;
    const int column = rack % best_columns;
    racks_.emplace_back(left + column * wide + kRackGap / 2, top + row * high, wide - kRackGap,
                        high - kRackGap);
  }
}

QRectF ClusterChart::box_of(int device) const {
  const int node = device / map_->devices_per_node();
  const auto [rack, place] = place_of_node_[static_cast<std::size_t>(node)];
  const QRectF& frame = racks_[static_cast<std::size_t>(rack)];
  return QRectF(frame.left() + place * cell_wide_,
                frame.top() + device % map_->devices_per_node() * cell_high_, cell_wide_,
                cell_high_);
}

QColor ClusterChart::colour_of_device(int device) const {
  if (device >= map_->ranks()) return grid_colour(palette());
  if (colour_ == MapColour::memory) return share_colour(map_->memory_share(device), palette());
  if (colour_ == MapColour::load) {
    const double load = load_ ? load_->devices[static_cast<std::size_t>(device)] : 0;
    return load_colour(load / full_load(), palette());
  }
  return place_colour(map_->place_of(device, colour_), map_->places(colour_), is_dark(palette()));
}

void ClusterChart::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  if (!map_ || racks_.empty()) {
    painter.setPen(muted_text(palette()));
    painter.drawText(rect(), Qt::AlignCenter, tr("A complete scenario has a cluster to show."));
    return;
  }
  painter.setRenderHint(QPainter::Antialiasing);
  paint_links(painter);
  paint_spines(painter);
  painter.setRenderHint(QPainter::Antialiasing, false);
  for (const QRectF& rack : racks_) {
    painter.fillRect(rack.adjusted(-kRackEdge, -kRackEdge, kRackEdge, kRackEdge),
                     palette().color(QPalette::Window));
  }
  const double line = std::min(cell_wide_, cell_high_) >= 4 ? 1 : 0;
  for (int device = 0; device < map_->devices(); ++device) {
    painter.fillRect(box_of(device).adjusted(0, 0, -line, -line), colour_of_device(device));
  }
  painter.setRenderHint(QPainter::Antialiasing);
  paint_group(painter);
  paint_legend(painter);
}

// Links to the spines go up along a trunk that the racks of a column share; others are straight.
QPolygonF ClusterChart::way_of(const MapLink& link) const {
  const QRectF& from = racks_[static_cast<std::size_t>(link.from)];
  if (link.to >= 0) {
    return QPolygonF({from.center(), racks_[static_cast<std::size_t>(link.to)].center()});
  }
  const double x = from.right() + kRackGap / 2;
  const double y = from.center().y();
  return QPolygonF({QPointF(from.right(), y), QPointF(x, y), QPointF(x, spines_bottom(*this))});
}

void ClusterChart::paint_links(QPainter& painter) const {
  const bool many = map_->links().size() > 200;
  QColor unknown = muted_text(palette());
  unknown.setAlphaF(many ? 0.35F : 0.7F);
  for (const std::size_t link : links_by_load_) {
    const QColor colour =
        load_ ? load_colour(load_->links[link] / full_load(), palette()) : unknown;
    painter.setPen(QPen(colour, load_ && !many ? 3 : 1));
    painter.drawPolyline(way_of(map_->links()[link]));
  }
}

void ClusterChart::paint_spines(QPainter& painter) const {
  const bool has_spines =
      std::ranges::any_of(map_->links(), [](const MapLink& link) { return link.to < 0; });
  if (!has_spines) return;
  const QRectF bar(racks_.front().left(), 2, racks_.back().right() - racks_.front().left(),
                   spines_bottom(*this));
  const QRectF whole(bar.left(), bar.top(), std::max(bar.width(), width() - 2 * bar.left()),
                     bar.height());
  const QString name = tr("spine switches");
  const double wide = std::max(whole.width(), fontMetrics().horizontalAdvance(name) + 2.0);
  const QRectF label(std::max(0.0, whole.center().x() - wide / 2), whole.top(), wide,
                     whole.height());
  painter.fillRect(whole.united(label), grid_colour(palette()));
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(label, Qt::AlignCenter, name);
}

void ClusterChart::paint_group(QPainter& painter) const {
  if (members_.empty()) return;
  const QColor ink = palette().color(QPalette::Text);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(ink, std::min(cell_wide_, cell_high_) < 8 ? 1 : 1.5));
  for (const int member : members_) painter.drawRect(box_of(member).adjusted(0, 0, -1, -1));
  const bool is_chain = colour_ == MapColour::stage;
  const std::size_t hops = is_chain ? members_.size() - 1 : members_.size();
  for (std::size_t i = 0; i < hops && members_.size() > 1; ++i) {
    const int next = members_[(i + 1) % members_.size()];
    painter.drawLine(box_of(members_[i]).center(), box_of(next).center());
  }
  painter.setPen(QPen(palette().color(QPalette::Highlight), 3));
  painter.drawRect(box_of(selected_).adjusted(-1, -1, 0, 0));
}

// The load at the end of the colour scale: that of the busiest link.
double ClusterChart::full_load() const { return load_ && load_->most > 0 ? load_->most : 1; }

// The left end of the colour scale, which leaves room for the text before it.
double ClusterChart::load_scale_left() const {
  const double texts = fontMetrics().horizontalAdvance(tr("link load 0")) +
                       fontMetrics().horizontalAdvance(percent_text(full_load()));
  return width() - kScale - texts - 4 * kChartGap;
}

void ClusterChart::paint_load_scale(QPainter& painter) const {
  const int line = fontMetrics().height();
  const double y = height() - 1.4 * line;
  double x = load_scale_left();
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(QPointF(x, y + fontMetrics().ascent()), tr("link load 0"));
  x += fontMetrics().horizontalAdvance(tr("link load 0")) + kChartGap;
  for (int part = 0; part < kScale; ++part) {
    painter.fillRect(QRectF(x + part, y + (line - kSwatch) / 2.0, 1, kSwatch),
                     load_colour(double(part) / kScale, palette()));
  }
  painter.drawText(QPointF(x + kScale + kChartGap, y + fontMetrics().ascent()),
                   percent_text(full_load()));
}

void ClusterChart::paint_legend(QPainter& painter) const {
  if (load_) paint_load_scale(painter);
  if (colour_ == MapColour::load) {
    if (load_) return;
    painter.setPen(muted_text(palette()));
    painter.drawText(rect().adjusted(0, 0, -kChartGap, -kChartGap),
                     Qt::AlignBottom | Qt::AlignRight, tr("The step is being simulated …"));
    return;
  }
  const int line = fontMetrics().height();
  const double y = height() - 1.4 * line;
  double x = racks_.front().left();
  const auto add = [&](const QColor& colour, const QString& text) {
    painter.fillRect(QRectF(x, y + (line - kSwatch) / 2.0, kSwatch, kSwatch), colour);
    painter.setPen(palette().color(QPalette::Text));
    const double wide = fontMetrics().horizontalAdvance(text);
    painter.drawText(QPointF(x + kSwatch + kChartGap, y + fontMetrics().ascent()), text);
    x += kSwatch + wide + 4 * kChartGap;
  };
  if (colour_ == MapColour::memory) {
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      add(share_colour(share, palette()), percent_text(share));
    }
    add(alarm_colour(palette()), tr("does not fit"));
    return;
  }
  const int places = map_->places(colour_);
  const double room = (load_ ? load_scale_left() : width()) - x;
  const double each =
      kSwatch + 4 * kChartGap + fontMetrics().horizontalAdvance(QStringLiteral("0000"));
  const int shown = std::clamp(static_cast<int>(room / each), 1, 16);
  const int step = std::max(1, (places + shown - 1) / shown);
  for (int place = 0; place < places; place += step) {
    add(place_colour(place, places, is_dark(palette())), QString::number(place));
  }
  if (map_->ranks() < map_->devices()) add(grid_colour(palette()), tr("idle"));
}

int ClusterChart::device_at(QPointF point) const {
  for (std::size_t rack = 0; rack < racks_.size(); ++rack) {
    if (!racks_[rack].contains(point)) continue;
    const QPointF in = point - racks_[rack].topLeft();
    const auto place = static_cast<std::size_t>(in.x() / cell_wide_);
    const int device =
        std::min(static_cast<int>(in.y() / cell_high_), map_->devices_per_node() - 1);
    const std::vector<int>& nodes = map_->racks()[rack].nodes;
    if (place < nodes.size()) return nodes[place] * map_->devices_per_node() + device;
  }
  return -1;
}

// The busiest of the links at this point.
std::optional<std::size_t> ClusterChart::link_at(QPointF point) const {
  constexpr double kNear = 4;  // pixels
  std::optional<std::size_t> found;
  for (const std::size_t link : links_by_load_) {
    const QPolygonF way = way_of(map_->links()[link]);
    for (qsizetype i = 0; i + 1 < way.size(); ++i) {
      if (distance_from_line(point, way[i], way[i + 1]) < kNear) found = link;
    }
  }
  return found;
}

QString ClusterChart::help_at(QPointF point) const {
  if (const int device = device_at(point); device >= 0) {
    QString text = map_->describe(device);
    if (load_) {
      text += tr("\nbusiest link %1 of the step")
                  .arg(percent_text(load_->devices[static_cast<std::size_t>(device)]));
    }
    return text;
  }
  const auto link = load_ ? link_at(point) : std::nullopt;
  return link ? load_->describe(*map_, *link) : QString();
}

void ClusterChart::choose(int rank) {
  if (!map_ || rank < 0 || rank >= map_->ranks()) return;
  select(rank);
  Q_EMIT chosen(rank);
}

void ClusterChart::resizeEvent(QResizeEvent* /*event*/) { place_racks(); }

void ClusterChart::mousePressEvent(QMouseEvent* event) { choose(device_at(event->position())); }

void ClusterChart::keyPressEvent(QKeyEvent* event) {
  const int node = map_ ? map_->devices_per_node() : 1;
  switch (event->key()) {
    case Qt::Key_Down:
      return choose(selected_ + 1);
    case Qt::Key_Up:
      return choose(selected_ - 1);
    case Qt::Key_Right:
      return choose(selected_ + node);
    case Qt::Key_Left:
      return choose(selected_ - node);
    default:
      return Chart::keyPressEvent(event);
  }
}

bool ClusterChart::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return Chart::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), map_ ? help_at(help->pos()) : QString(), this);
  return true;
}

}  // namespace trainyard
