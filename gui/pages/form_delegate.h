// Editors of the form: a list to choose from where there is one, a searchable list of the catalog
// for references, else a line.
#pragma once

#include "gui/pages/emphasis_delegate.h"

class QAbstractItemView;
class QComboBox;

namespace trainyard {

// A searchable list where any text may be typed; what is chosen is committed at once.
QComboBox* chooser(QWidget* parent, const QStringList& choices, QAbstractItemDelegate* delegate);

// A cell is edited once it is clicked or typed into; Tab goes through without opening one.
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
