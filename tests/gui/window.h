// A fixture with the real window on a small scenario, and the user actions that tests share.
#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QFileDialog>
#include <QMimeData>
#include <QTest>
#include <QTimer>
#include <chrono>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "gui/main_window.h"
#include "gui/pages/json_editor.h"
#include "gui/presenters/text.h"
#include "tests/gui/application.h"

namespace trainyard {

inline constexpr const char* kSmall = R"({
  "trainyard": "scenario/1",
  "model": "llama-3.1-8b",
  "cluster": { "node": "dgx-h100-80gb", "nodes": 2 },
  "training": { "global_batch": 64, "sequence_length": 4096 }
}
)";

class Window : public testing::Test {
 protected:
  void SetUp() override { open(kSmall); }
  void open(const std::string& text) {
    ASSERT_TRUE(window_.open_file(written("case.json", text)));
    window_.show();
    window_.activateWindow();  // shortcuts are for the active window
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window_));
  }
  template <typename W>
  W& child(const char* name) {
    auto* found = window_.findChild<W*>(QLatin1String(name));
    if (found == nullptr) throw std::runtime_error(name);
    return *found;
  }
  template <typename W>
  W& child_of(QWidget& page, const char* name) {
    auto* found = page.findChild<W*>(QLatin1String(name));
    if (found == nullptr) throw std::runtime_error(name);
    return *found;
  }
  void drop(const std::filesystem::path& file) {
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(path_text(file))});
    QDragEnterEvent enter(QPoint(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&window_, &enter);
    ASSERT_TRUE(enter.isAccepted());
    QDropEvent drop(QPointF(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&window_, &drop);
  }
  JsonEditor& editor() { return *window_.findChild<JsonEditor*>(); }
  // Shows a page by its shortcut, Ctrl and its number.
  void go_to_page(int number) {
    QTest::keyClick(&window_, static_cast<Qt::Key>(Qt::Key_0 + number), Qt::ControlModifier);
  }

  MainWindow window_;
};

// Answers the next modal window of this kind once it is shown, however long the program takes.
template <typename Dialog>
void when_asked(std::function<void(Dialog&)> answer) {
  auto* timer = new QTimer(qApp);
  QObject::connect(timer, &QTimer::timeout, timer, [timer, answer = std::move(answer)] {
    auto* dialog = qobject_cast<Dialog*>(QApplication::activeModalWidget());
    if (dialog == nullptr) return;
    timer->stop();
    timer->deleteLater();
    answer(*dialog);
  });
  timer->start(std::chrono::milliseconds(1));
}

// Makes the next file dialog, which the caller is about to open, answer with this file.
inline void answer_file_dialog(const std::filesystem::path& file) {
  when_asked<QFileDialog>([file](QFileDialog& dialog) {
    dialog.selectFile(path_text(file));
    static_cast<QDialog&>(dialog).accept();
  });
}

}  // namespace trainyard
