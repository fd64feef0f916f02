// The one QApplication that the benchmarks of the window share. It uses the offscreen platform, so
// no display is needed.
#pragma once

#include <QApplication>

namespace trainyard {

// The application is never destroyed, because objects of Qt must not outlive it.
inline QApplication& application() {
  static int count = 1;
  static char name[] = "gui_benchmark";
  static char* arguments[] = {name, nullptr};
  static QApplication& application = []() -> QApplication& {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    return *new QApplication(count, arguments);
  }();
  return application;
}

}  // namespace trainyard
