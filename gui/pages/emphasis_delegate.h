// Draws the cells of a table or tree as its model emphasises them (gui/presenters/emphasis.h).
#pragma once

#include <QStyledItemDelegate>

namespace trainyard {

class EmphasisDelegate : public QStyledItemDelegate {
  Q_OBJECT
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;
};

}  // namespace trainyard
