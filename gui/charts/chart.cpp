#include "gui/charts/chart.h"

#include <QClipboard>
#include <QContextMenuEvent>
#include <QGuiApplication>
#include <QKeyEvent>
#include <QMenu>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/charts/colours.h"

namespace trainyard {

double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double lead : {1.0, 2.0, 5.0}) {
    if (lead * power >= least) return lead * power;
  }
  return 10 * power;
}

int digits_of_tick(double value, double step) {
  const auto place = [](double number) {
    return static_cast<int>(std::floor(std::log10(std::abs(number)) + 1e-9));
  };
  return value == 0 ? 1 : std::max(1, place(value) - place(step) + 1);
}

AxisEnds ends_around(double low, double high) {
  const double span = high - low;
  const double largest = std::max(std::abs(low), std::abs(high));
  const double margin =
      span > 0 ? std::max(0.06 * span, 1e-9 * largest) : std::max(0.05 * largest, 1e-12);
  return {low - margin, high + margin};
}

Chart::Chart(QWidget* parent) : QWidget(parent) { setFocusPolicy(Qt::StrongFocus); }

QPixmap Chart::picture() {
  shows_focus_ = false;
  QPixmap all = grab();
  shows_focus_ = true;
  return all;
}

void Chart::copy_picture() { QGuiApplication::clipboard()->setPixmap(picture()); }

void Chart::copy_data() const { QGuiApplication::clipboard()->setText(data_text()); }

void Chart::set_why_none(const QString& why) {
  why_none_ = why;
  update();
}

void Chart::paint_none(QPainter& painter, const QRectF& area, const QString& why) const {
  painter.setPen(muted_text(palette()));
  painter.drawText(area.adjusted(kChartGap, 0, -kChartGap, 0), Qt::AlignCenter | Qt::TextWordWrap,
                   why);
}

// Paints the frame of the focus after, and so over, what the derived chart paints.
bool Chart::event(QEvent* event) {
  const bool done = QWidget::event(event);
  if (event->type() == QEvent::Paint && shows_focus_ && hasFocus()) paint_focus();
  return done;
}

void Chart::paint_focus() {
  QPainter painter(this);
  painter.setPen(QPen(palette().color(QPalette::Highlight), 2));
  painter.drawRect(rect().adjusted(1, 1, -1, -1));
}

void Chart::contextMenuEvent(QContextMenuEvent* event) {
  QMenu menu(this);
  menu.addAction(tr("Copy as picture"), this, &Chart::copy_picture);
  menu.addAction(tr("Copy as data"), this, &Chart::copy_data);
  menu.exec(event->globalPos());
}

void Chart::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy)) {
    copy_data();
  } else {
    QWidget::keyPressEvent(event);
  }
}

}  // namespace trainyard
