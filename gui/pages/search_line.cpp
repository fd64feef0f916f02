#include "gui/pages/search_line.h"

#include <QKeyEvent>

namespace trainyard {

SearchLine::SearchLine(const QString& shown_when_empty, const QString& name) {
  setPlaceholderText(shown_when_empty);
  setAccessibleName(name);
  setClearButtonEnabled(true);
}

bool SearchLine::event(QEvent* event) {
  if (event->type() != QEvent::ShortcutOverride) return QLineEdit::event(event);
  const auto* key = static_cast<const QKeyEvent*>(event);
  const bool is_windows = (key->matches(QKeySequence::Undo) && !isUndoAvailable()) ||
                          (key->matches(QKeySequence::Redo) && !isRedoAvailable());
  if (!is_windows) return QLineEdit::event(event);
  event->ignore();
  return false;
}

}  // namespace trainyard
