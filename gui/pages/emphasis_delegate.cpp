#include "gui/pages/emphasis_delegate.h"

#include "gui/charts/colours.h"
#include "gui/presenters/emphasis.h"

namespace trainyard {

void EmphasisDelegate::initStyleOption(QStyleOptionViewItem* option,
                                       const QModelIndex& index) const {
  QStyledItemDelegate::initStyleOption(option, index);
  if (index.data(strong_role).toBool()) option->font.setBold(true);
  if (index.data(problem_role).toBool()) {
    option->palette.setColor(QPalette::Text, alarm_colour(option->palette));
  } else if (index.data(muted_role).toBool()) {
    option->palette.setColor(QPalette::Text, muted_text(option->palette));
  }
}

}  // namespace trainyard
