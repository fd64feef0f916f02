#include "tests/gui/application.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <QApplication>
#include <QSettings>
#include <QTest>
#include <fstream>
#include <memory>

#include "gui/theme.h"

namespace trainyard {
namespace {

constexpr const char* kHome = "TRAINYARD_GUI_HOME";

class Application : public testing::Environment {
 public:
  void SetUp() override {
    owns_home_ = !qEnvironmentVariableIsSet(kHome);
    if (owns_home_) {
      const auto folder = std::filesystem::path(testing::TempDir()) /
                          ("trainyard_gui." + std::to_string(::getpid()));
      qputenv(kHome, folder.c_str());
    }
    std::filesystem::create_directories(gui_home() / "runtime");
    std::filesystem::permissions(gui_home() / "runtime", std::filesystem::perms::owner_all);
    for (const char* variable : {"HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"}) {
      qputenv(variable, gui_home().c_str());
    }
    qputenv("XDG_RUNTIME_DIR", (gui_home() / "runtime").c_str());
    qputenv("QT_QPA_PLATFORM", "offscreen");
    application_ = std::make_unique<QApplication>(count_, arguments_);
    QApplication::setOrganizationName(QStringLiteral("trainyard"));
    QApplication::setApplicationName(QStringLiteral("trainyard-gui"));
    restore_theme();
  }
  void TearDown() override {
    application_.reset();
    if (owns_home_) std::filesystem::remove_all(gui_home());
  }

 private:
  char name_[10] = "gui_test";
  char* arguments_[2] = {name_, nullptr};
  int count_ = 1;
  bool owns_home_ = false;
  std::unique_ptr<QApplication> application_;
};

const auto* const kApplication = testing::AddGlobalTestEnvironment(new Application);

}  // namespace

std::filesystem::path gui_home() { return qEnvironmentVariable(kHome).toStdString(); }

std::filesystem::path example(const std::string& name) {
  return std::filesystem::path(TRAINYARD_SOURCE) / "scenarios" / "examples" / name;
}

bool wait_until(const std::function<bool()>& holds, std::chrono::milliseconds most) {
  return QTest::qWaitFor(holds, static_cast<int>(most.count()));
}

std::filesystem::path written(const std::string& name, const std::string& text) {
  const auto file = gui_home() / name;
  std::ofstream(file) << text;
  return file;
}

}  // namespace trainyard
