// Editors of the form: a list to choose from where there is one, a searchable list of the catalog
// for references, else a line.
#pragma once

#include <QStyledItemDelegate>

class QComboBox;

namespace trainyard {

// A searchable list where any text may be typed; what is chosen is committed at once.
QComboBox* chooser(QWidget* parent, const QStringList& choices, QAbstractItemDelegate* delegate);

class FormDelegate : public QStyledItemDelegate {
  Q_OBJECT
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& option,
                        const QModelIndex& index) const override;
  void setEditorData(QWidget* editor, const QModelIndex& index) const override;
  void setModelData(QWidget* editor, QAbstractItemModel* model,
                    const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;
};

}  // namespace trainyard
