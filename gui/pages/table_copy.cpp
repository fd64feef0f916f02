#include "gui/pages/table_copy.h"

#include <QAction>
#include <QClipboard>
#include <QCoreApplication>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeySequence>
#include <QStringList>
#include <QTableView>
#include <vector>

namespace trainyard {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("TableCopy", text); }

std::vector<int> rows_of(const QTableView& table, bool selected_only) {
  std::vector<int> rows;
  for (int row = 0; row < table.model()->rowCount(); ++row) {
    if (!selected_only || table.selectionModel()->rowIntersectsSelection(row)) rows.push_back(row);
  }
  return rows;
}

// A tab or a line end within a cell would begin another cell, so each becomes a space.
QString cell_text(const QVariant& value) { return value.toString().simplified(); }

QString text_of(const QTableView& table, const std::vector<int>& rows) {
  const QAbstractItemModel& model = *table.model();
  QStringList heads = {QString()};
  for (int column = 0; column < model.columnCount(); ++column) {
    heads.append(cell_text(model.headerData(column, Qt::Horizontal)));
  }
  QString text = heads.join(QLatin1Char('\t')) + QLatin1Char('\n');
  for (const int row : rows) {
    QStringList cells = {cell_text(model.headerData(row, Qt::Vertical))};
    for (int column = 0; column < model.columnCount(); ++column) {
      cells.append(cell_text(model.index(row, column).data()));
    }
    text += cells.join(QLatin1Char('\t')) + QLatin1Char('\n');
  }
  return text;
}

}  // namespace

QString table_text(const QTableView& table) {
  return text_of(table, rows_of(table, table.selectionModel()->hasSelection()));
}

void make_copyable(QTableView& table) {
  const auto add = [&table](const QString& name, auto text) {
    auto* action = new QAction(name, &table);
    action->setShortcutContext(Qt::WidgetShortcut);
    QObject::connect(action, &QAction::triggered, &table,
                     [text] { QGuiApplication::clipboard()->setText(text()); });
    table.addAction(action);
    return action;
  };
  add(tr("Copy the rows"), [&table] { return table_text(table); })->setShortcut(QKeySequence::Copy);
  add(tr("Copy the whole table"), [&table] { return text_of(table, rows_of(table, false)); });
  table.setContextMenuPolicy(Qt::ActionsContextMenu);
}

}  // namespace trainyard
