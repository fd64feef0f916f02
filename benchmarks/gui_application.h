// The application that the benchmarks of the window share; no display is needed.
#pragma once

#include <QApplication>

namespace trainyard {

// It is never taken down: nothing of the toolkit may outlive it.
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
