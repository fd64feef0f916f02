#include "gui/pages/form_delegate.h"

#include <QComboBox>
#include <QCompleter>
#include <QLineEdit>

#include "gui/charts/colours.h"
#include "gui/presenters/form_model.h"

namespace trainyard {

QComboBox* chooser(QWidget* parent, const QStringList& choices, QAbstractItemDelegate* delegate) {
  auto* box = new QComboBox(parent);
  box->setEditable(true);
  box->addItem(QString());
  box->addItems(choices);
  box->setInsertPolicy(QComboBox::NoInsert);
  box->completer()->setCompletionMode(QCompleter::PopupCompletion);
  box->completer()->setFilterMode(Qt::MatchContains);
  box->completer()->setCaseSensitivity(Qt::CaseInsensitive);
  QObject::connect(box, &QComboBox::activated, delegate, [delegate, box] {
    Q_EMIT delegate->commitData(box);
    Q_EMIT delegate->closeEditor(box);
  });
  return box;
}

QWidget* FormDelegate::createEditor(QWidget* parent, const QStyleOptionViewItem& /*option*/,
                                    const QModelIndex& index) const {
  const QStringList choices = index.data(FormModel::choices_role).toStringList();
  QWidget* editor = nullptr;
  if (choices.isEmpty()) {
    auto* line = new QLineEdit(parent);
    line->setFrame(false);
    editor = line;
  } else {
    editor = chooser(parent, choices, const_cast<FormDelegate*>(this));
  }
  editor->setAccessibleName(index.siblingAtColumn(FormModel::key_column).data().toString());
  editor->setToolTip(index.data(FormModel::help_role).toString());
  return editor;
}

void FormDelegate::setEditorData(QWidget* editor, const QModelIndex& index) const {
  const QString text = index.data(Qt::EditRole).toString();
  if (auto* box = qobject_cast<QComboBox*>(editor)) {
    box->setEditText(text);
    box->lineEdit()->selectAll();
  } else if (auto* line = qobject_cast<QLineEdit*>(editor)) {
    line->setText(text);
  }
}

void FormDelegate::setModelData(QWidget* editor, QAbstractItemModel* model,
                                const QModelIndex& index) const {
  const auto* box = qobject_cast<QComboBox*>(editor);
  const auto* line = qobject_cast<QLineEdit*>(editor);
  model->setData(index, box != nullptr ? box->currentText() : line->text());
}

QSize FormDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QSize size = QStyledItemDelegate::sizeHint(option, index);
  size.setHeight(option.fontMetrics.height() + 10);
  return size;
}

void FormDelegate::initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const {
  QStyledItemDelegate::initStyleOption(option, index);
  const bool absent = !index.data(FormModel::present_role).toBool();
  const bool marked = index.data(Qt::ForegroundRole).isValid();
  if (absent && !marked) {
    option->palette.setColor(QPalette::Text, muted_text(option->palette));
    if (index.column() == FormModel::value_column) option->font.setItalic(true);
  }
}

}  // namespace trainyard
