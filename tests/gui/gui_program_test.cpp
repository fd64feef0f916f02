// The program itself where there is no display.
#include <gtest/gtest.h>

#include <QProcess>
#include <QStringList>

#include "tests/gui/application.h"

namespace trainyard {
namespace {

struct RanGui {
  QProcess::ExitStatus how = QProcess::CrashExit;
  int status = -1;
  QString out, err;
};

RanGui run_without_display(const QStringList& arguments) {
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY"}) {
    environment.remove(QString::fromLatin1(name));
  }
  environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("xcb"));
  QProcess process;
  process.setProcessEnvironment(environment);
  process.start(QStringLiteral(TRAINYARD_GUI_PROGRAM), arguments);
  EXPECT_TRUE(process.waitForFinished(60000));
  return {process.exitStatus(), process.exitCode(),
          QString::fromUtf8(process.readAllStandardOutput()),
          QString::fromUtf8(process.readAllStandardError())};
}

TEST(GuiProgram, HelpsWithoutADisplay) {
  for (const char* option : {"--help", "-h", "--version", "-v"}) {
    const RanGui ran = run_without_display({QString::fromLatin1(option)});
    EXPECT_EQ(ran.how, QProcess::NormalExit) << option;
    EXPECT_EQ(ran.status, 0) << option << ": " << ran.err.toStdString();
    EXPECT_TRUE(ran.out.contains(QStringLiteral("trainyard-gui"))) << option;
    EXPECT_TRUE(ran.err.isEmpty()) << ran.err.toStdString();
  }
}

// The exit status is the one for a machine that fails.
TEST(GuiProgram, SaysInALineThatThereIsNoDisplay) {
  for (const QStringList& arguments : {QStringList{}, {QStringLiteral("a.json")}}) {
    const RanGui ran = run_without_display(arguments);
    EXPECT_EQ(ran.how, QProcess::NormalExit);
    EXPECT_EQ(ran.status, 3);
    EXPECT_EQ(ran.err.count(QLatin1Char('\n')), 1) << ran.err.toStdString();
    EXPECT_TRUE(ran.err.contains(QStringLiteral("found no display"))) << ran.err.toStdString();
  }
}

}  // namespace
}  // namespace trainyard
