// A line that is searched by. Undo and redo are the document's while nothing was typed here that
// they could take back.
#pragma once

#include <QLineEdit>

namespace trainyard {

class SearchLine : public QLineEdit {
 public:
  SearchLine(const QString& shown_when_empty, const QString& name);

 protected:
  bool event(QEvent* event) override;
};

}  // namespace trainyard
