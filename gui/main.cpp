// trainyard-gui [FILE]
#include <QApplication>
#include <QCommandLineParser>
#include <QIcon>
#include <QLocale>

#include "gui/main_window.h"
#include "gui/presenters/text.h"
#include "gui/theme.h"

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("trainyard"));
  QApplication::setApplicationName(QStringLiteral("trainyard-gui"));
  QApplication::setApplicationVersion(QStringLiteral(TRAINYARD_VERSION));
  QApplication::setWindowIcon(QIcon(QStringLiteral(":/trainyard.png")));
  QLocale::setDefault(QLocale::c());  // numbers are written as documents write them
  QCommandLineParser options;
  options.setApplicationDescription(
      QApplication::translate("main", "Plans the training of large models, with a window"));
  options.addHelpOption();
  options.addVersionOption();
  options.addPositionalArgument(QStringLiteral("FILE"),
                                QApplication::translate("main", "scenario document"),
                                QStringLiteral("[FILE]"));
  options.process(application);
  trainyard::restore_theme();
  trainyard::MainWindow window;
  const QStringList files = options.positionalArguments();
  window.open_example();
  if (!files.isEmpty()) window.open_file(trainyard::path_of(files.first()));
  window.show();
  window.offer_recovery();
  return QApplication::exec();
}
