// Editors for the values of the form: a list if the values are known, a searchable list of the
// catalog for a reference, otherwise a line of text.
#pragma once

#include "gui/pages/emphasis_delegate.h"

class QAbstractItemView;
class QComboBox;

namespace trainyard {

// A searchable list that also takes any other text; a choice from the list is committed at once.
QComboBox* chooser(QWidget* parent, const QStringList& choices, QAbstractItemDelegate* delegate);

// Opens the editor of a cell when it is clicked or typed into, but not when Tab moves to it.
void edit_when_asked(QAbstractItemView& view);

class FormDelegate : public EmphasisDelegate {
  Q_OBJECT
 public:
  using EmphasisDelegate::EmphasisDelegate;

  QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& option,
                        const QModelIndex& index) const override;
  void setEditorData(QWidget* editor, const QModelIndex& index) const override;
  void setModelData(QWidget* editor, QAbstractItemModel* model,
                    const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

}  // namespace trainyard
