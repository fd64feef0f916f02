#include "gui/pages/save_dialog.h"

#include <QCoreApplication>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QRegularExpression>
#include <QStringList>
#include <algorithm>

#include "gui/presenters/text.h"

namespace trainyard {
namespace {

// ".json" of "Trace (*.json)".
QStringList endings_of(const QString& types) {
  static const QRegularExpression kEnding(QStringLiteral("\\*(\\.[^ )]+)"));
  QStringList endings;
  for (auto found = kEnding.globalMatch(types); found.hasNext();) {
    endings.append(found.next().captured(1));
  }
  return endings;
}

bool may_replace(QWidget* parent, const QString& file) {
  const auto answer = QMessageBox::warning(
      parent, QCoreApplication::translate("save_dialog", "Replace"),
      QCoreApplication::translate("save_dialog", "%1 exists already. Saving replaces it.")
          .arg(QFileInfo(file).fileName()),
      QMessageBox::Save | QMessageBox::Cancel, QMessageBox::Cancel);
  return answer == QMessageBox::Save;
}

}  // namespace

QString with_ending(const QString& name, const QString& type, const QString& types) {
  const auto has = [&name](const QString& ending) {
    return name.endsWith(ending, Qt::CaseInsensitive);
  };
  return std::ranges::any_of(endings_of(types), has) ? name : name + endings_of(type).value(0);
}

std::filesystem::path ask_where_to_save(QWidget* parent, const SaveQuestion& question) {
  QFileDialog dialog(parent, question.title);
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setFileMode(QFileDialog::AnyFile);
  dialog.setNameFilters(question.types.split(QStringLiteral(";;")));
  dialog.setOption(QFileDialog::DontConfirmOverwrite);  // the name may still lack its ending
  const QFileInfo proposed(question.name);
  if (question.name.contains(QLatin1Char('/'))) dialog.setDirectory(proposed.absolutePath());
  dialog.selectFile(proposed.fileName());
  while (dialog.exec() == QDialog::Accepted) {
    const QString file =
        with_ending(dialog.selectedFiles().value(0), dialog.selectedNameFilter(), question.types);
    const bool is_there = QFileInfo::exists(file);
    if (!is_there || question.goes_on || may_replace(parent, file)) return path_of(file);
  }
  return {};
}

}  // namespace trainyard
