#include "gui/charts/breakdown_bar.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <utility>

#include "gui/charts/colours.h"
#include "gui/presenters/text.h"

namespace trainyard {
namespace {

constexpr int kBarHeight = 30;

}  // namespace

BreakdownBar::BreakdownBar(QWidget* parent) : Chart(parent) {
  setAccessibleName(tr("Where the time of a step goes"));
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void BreakdownBar::set_parts(std::vector<BarPart> parts) {
  parts_ = std::move(parts);
  whole_ = 0;
  QStringList words;
  for (const BarPart& part : parts_) {
    whole_ += part.value;
    words.append(tr("%1: %2").arg(part.label, part.text));
  }
  setAccessibleDescription(words.join(QStringLiteral("; ")));
  updateGeometry();
  update();
}

QString BreakdownBar::data_text() const {
  QString text = tr("part\tseconds") + QLatin1Char('\n');
  for (const BarPart& part : parts_) {
    text +=
        part.label + QLatin1Char('\t') + QString::number(part.value, 'g', 17) + QLatin1Char('\n');
  }
  return text;
}

QSize BreakdownBar::sizeHint() const { return {520, heightForWidth(520)}; }
QSize BreakdownBar::minimumSizeHint() const {
  return {240, kBarHeight + 2 * fontMetrics().height()};
}

int BreakdownBar::heightForWidth(int width) const {
  const std::vector<Entry> entries = legend(width);
  return entries.empty() ? kBarHeight : entries.back().box.bottom() + 2;
}

std::vector<BreakdownBar::Entry> BreakdownBar::legend(int width) const {
  std::vector<Entry> entries;
  const int height = fontMetrics().height();
  int x = 0;
  int y = kBarHeight + kChartGap;
  for (const BarPart& part : parts_) {
    const QString text = tr("%1 %2").arg(part.label, part.text.section(QStringLiteral(", "), 1));
    const int wide = kSwatch + kChartGap + fontMetrics().horizontalAdvance(text);
    if (x > 0 && x + wide > width) {
      x = 0;
      y += height + 2;
    }
    entries.push_back({QRect(x, y, wide, height), text});
    x += wide + 3 * kChartGap;
  }
  return entries;
}

void BreakdownBar::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  const bool dark = is_dark(palette());
  if (whole_ <= 0) return;
  double at = 0;
  for (const BarPart& part : parts_) {
    const double wide = width() * part.value / whole_;
    const QColor colour = colour_of(part.key, dark);
    const QRectF box(at, 0, wide, kBarHeight);
    painter.fillRect(box, colour);
    painter.fillRect(QRectF(box.right() - 1, 0, 1, kBarHeight), palette().color(QPalette::Window));
    if (fontMetrics().horizontalAdvance(part.label) + 2 * kChartGap < wide) {
      painter.setPen(text_on(colour));
      painter.drawText(box, Qt::AlignCenter, part.label);
    }
    at += wide;
  }
  const std::vector<Entry> entries = legend(width());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const QRect& box = entries[i].box;
    painter.fillRect(box.x(), box.center().y() - kSwatch / 2, kSwatch, kSwatch,
                     colour_of(parts_[i].key, dark));
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(box.adjusted(kSwatch + kChartGap, 0, 4, 0), Qt::AlignVCenter, entries[i].text);
  }
}

const BarPart* BreakdownBar::part_at(QPoint point) const {
  const std::vector<Entry> entries = legend(width());
  double at = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const double wide = width() * parts_[i].value / whole_;
    const bool in_bar = point.y() < kBarHeight && point.x() >= at && point.x() < at + wide;
    if (in_bar || entries[i].box.contains(point)) return &parts_[i];
    at += wide;
  }
  return nullptr;
}

bool BreakdownBar::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return Chart::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const BarPart* part = part_at(help->pos());
  QToolTip::showText(help->globalPos(),
                     part == nullptr ? QString() : tr("%1: %2").arg(part->label, part->text), this);
  return true;
}

}  // namespace trainyard
