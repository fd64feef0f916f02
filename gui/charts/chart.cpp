#include "gui/charts/chart.h"

#include <QClipboard>
#include <QContextMenuEvent>
#include <QGuiApplication>
#include <QKeyEvent>
#include <QMenu>
#include <QPixmap>

namespace trainyard {

Chart::Chart(QWidget* parent) : QWidget(parent) { setFocusPolicy(Qt::StrongFocus); }

void Chart::copy_picture() { QGuiApplication::clipboard()->setPixmap(grab()); }

void Chart::copy_data() const { QGuiApplication::clipboard()->setText(data_text()); }

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
