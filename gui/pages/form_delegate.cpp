#include "gui/pages/form_delegate.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QCompleter>
#include <QLineEdit>

#include "gui/presenters/document/form_model.h"

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

void edit_when_asked(QAbstractItemView& view) {
  view.setEditTriggers(QAbstractItemView::EditKeyPressed | QAbstractItemView::AnyKeyPressed);
  QObject::connect(&view, &QAbstractItemView::clicked, &view, [&view](const QModelIndex& at) {
    if ((at.flags() & Qt::ItemIsEditable) != 0) view.edit(at);
  });
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
  QSize size = EmphasisDelegate::sizeHint(option, index);
  size.setHeight(option.fontMetrics.height() + 10);
  return size;
}

}  // namespace trainyard
