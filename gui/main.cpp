// trainyard-gui [FILE]
#include <QApplication>
#include <QCommandLineParser>
#include <QIcon>
#include <QLocale>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "gui/main_window.h"
#include "gui/presenters/text.h"
#include "gui/theme.h"

namespace {

constexpr int kMachineFailed = 3;  // the exit status that `trainyard` has in this case too

// Whether the arguments ask for text, such as --help, which needs no display.
bool asks_for_text(const std::vector<std::string_view>& arguments) {
  constexpr std::array<std::string_view, 5> kTexts = {"-h", "--help", "--help-all", "-v",
                                                      "--version"};
  const auto end = std::ranges::find(arguments, std::string_view("--"));
  return std::any_of(arguments.begin(), end, [&](std::string_view argument) {
    return std::ranges::find(kTexts, argument) != kTexts.end();
  });
}

// Handles messages while Qt looks for a display. If it finds none, Qt itself would print a list of
// its plugins and abort.
void say_no_display(QtMsgType type, const QMessageLogContext& /*context*/,
                    const QString& /*message*/) {
  if (type != QtFatalMsg) return;
  std::fputs(
      "trainyard-gui: found no display to show a window on; allowed: one that DISPLAY or "
      "WAYLAND_DISPLAY names and Qt has a plugin for\n",
      stderr);
  std::_Exit(kMachineFailed);
}

std::unique_ptr<QCoreApplication> application_of(int& argc, char** argv) {
  if (asks_for_text({argv, argv + argc})) {
    return std::make_unique<QCoreApplication>(argc, argv);
  }
  const QtMessageHandler usual = qInstallMessageHandler(say_no_display);
  auto application = std::make_unique<QApplication>(argc, argv);
  qInstallMessageHandler(usual);
  return application;
}

}  // namespace

int main(int argc, char** argv) {
  const std::unique_ptr<QCoreApplication> application = application_of(argc, argv);
  QCoreApplication::setOrganizationName(QStringLiteral("trainyard"));
  QCoreApplication::setApplicationName(QStringLiteral("trainyard-gui"));
  QCoreApplication::setApplicationVersion(QStringLiteral(TRAINYARD_VERSION));
  QLocale::setDefault(QLocale::c());  // numbers are written as documents write them
  QCommandLineParser options;
  options.setApplicationDescription(
      QCoreApplication::translate("main", "Plans the training of large models, with a window"));
  options.addHelpOption();
  options.addVersionOption();
  options.addPositionalArgument(QStringLiteral("FILE"),
                                QCoreApplication::translate("main", "scenario document"),
                                QStringLiteral("[FILE]"));
  options.process(*application);  // ends the program if the arguments ask for text
  QApplication::setWindowIcon(QIcon(QStringLiteral(":/trainyard.png")));
  trainyard::restore_theme();
  trainyard::MainWindow window;
  const QStringList files = options.positionalArguments();
  window.open_example();
  window.show();
  if (!files.isEmpty()) window.open_at_start(trainyard::path_of(files.first()));
  window.offer_recovery();
  return QApplication::exec();
}
