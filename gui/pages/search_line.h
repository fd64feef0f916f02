// A line for a search text. Undo and redo act on it only if something was typed here that they can
// take back; otherwise they act on the document.
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
