#include "gui/pages/json_editor.h"

#include <QDragEnterEvent>
#include <QFontDatabase>
#include <QMimeData>
#include <QPainter>
#include <QTextBlock>
#include <algorithm>

#include "gui/charts/colours.h"

namespace trainyard {
namespace {

class Gutter : public QWidget {
 public:
  explicit Gutter(JsonEditor& editor) : QWidget(&editor), editor_(editor) {}

 protected:
  void paintEvent(QPaintEvent* event) override { editor_.paint_gutter(*event); }

 private:
  JsonEditor& editor_;
};

// The text as the editor holds it: lines end with a line feed, and no-break spaces become spaces.
QString as_shown(QString text) {
  text.replace(QLatin1String("\r\n"), QLatin1String("\n"));
  text.replace(QLatin1Char('\r'), QLatin1Char('\n'));
  text.replace(QChar::ParagraphSeparator, QLatin1Char('\n'));
  text.replace(QChar::LineSeparator, QLatin1Char('\n'));
  return text.replace(QChar::Nbsp, QLatin1Char(' '));
}

// The index in `text` of the character that the editor holds at `place`. They differ where the text
// has two characters for a line end.
qsizetype place_in(const QString& text, qsizetype place) {
  qsizetype at = 0;
  for (; place > 0 && at < text.size(); --place) {
    at += QStringView(text).mid(at).startsWith(QLatin1String("\r\n")) ? 2 : 1;
  }
  return at;
}

qsizetype same_start(const QString& a, const QString& b) {
  const auto ends = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return ends.first - a.begin();
}

}  // namespace

JsonEditor::JsonEditor(QWidget* parent) : QPlainTextEdit(parent), gutter_(new Gutter(*this)) {
  setAccessibleName(tr("Document as JSON"));
  setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  setLineWrapMode(NoWrap);
  setUndoRedoEnabled(false);
  setTabChangesFocus(true);
  connect(this, &QPlainTextEdit::blockCountChanged, this, [this] { place_gutter(); });
  connect(this, &QPlainTextEdit::updateRequest, this, [this](const QRect& rect, int dy) {
    if (dy != 0) {
      gutter_->scroll(0, dy);
    } else {
      gutter_->update(0, rect.y(), gutter_->width(), rect.height());
    }
  });
  connect(document(), &QTextDocument::contentsChange, this, &JsonEditor::take_change);
  connect(this, &QPlainTextEdit::textChanged, this, [this] {
    if (!showing_) Q_EMIT edited(text_);
  });
  place_gutter();
}

void JsonEditor::show_text(const QString& text) {
  text_ = text;
  const QString now = toPlainText();
  const QString next = as_shown(text);
  if (now == next) return;
  const qsizetype start = same_start(now, next);
  qsizetype end = 0;
  const qsizetype most = std::min(now.size(), next.size()) - start;
  while (end < most && now[now.size() - 1 - end] == next[next.size() - 1 - end]) ++end;
  showing_ = true;
  QTextCursor cursor(document());
  cursor.setPosition(static_cast<int>(start));
  cursor.setPosition(static_cast<int>(now.size() - end), QTextCursor::KeepAnchor);
  cursor.insertText(next.mid(start, next.size() - start - end));
  showing_ = false;
}

// Applies an edit to the text as its author wrote it, and changes nothing else of it.
void JsonEditor::take_change(int place, int removed, int added) {
  if (showing_) return;
  QTextCursor typed(document());
  const int last = document()->characterCount() - 1;  // it counts the end of the last line too
  typed.setPosition(place);
  typed.setPosition(std::min(place + added, last), QTextCursor::KeepAnchor);
  const QLatin1String line_end(text_.contains(QLatin1String("\r\n")) ? "\r\n" : "\n");
  const QString text = as_shown(typed.selectedText()).replace(QLatin1Char('\n'), line_end);
  text_ = text_.left(place_in(text_, place)) + text + text_.mid(place_in(text_, place + removed));
}

void JsonEditor::mark_line(int line, const QString& message) {
  marked_ = line;
  setToolTip(message);
  show_mark();
  gutter_->update();
}

void JsonEditor::go_to_line(int line) {
  const QTextBlock block = document()->findBlockByNumber(line - 1);
  if (!block.isValid()) return;
  setTextCursor(QTextCursor(block));
  centerCursor();
  setFocus();
}

int JsonEditor::gutter_width() const {
  const int digits = std::max(3, static_cast<int>(QString::number(blockCount()).size()));
  return fontMetrics().horizontalAdvance(QLatin1Char('0')) * digits + 14;
}

void JsonEditor::paint_gutter(const QPaintEvent& event) {
  QPainter painter(gutter_);
  painter.fillRect(event.rect(), palette().color(QPalette::AlternateBase));
  painter.setFont(font());
  QTextBlock block = firstVisibleBlock();
  double top = blockBoundingGeometry(block).translated(contentOffset()).top();
  while (block.isValid() && top <= event.rect().bottom()) {
    const double high = blockBoundingRect(block).height();
    const bool wrong = block.blockNumber() + 1 == marked_;
    const QRectF box(0, top, gutter_->width(), high);
    if (wrong) painter.fillRect(box, alarm_colour(palette()));
    painter.setPen(wrong ? text_on(alarm_colour(palette())) : muted_text(palette()));
    painter.drawText(box.adjusted(0, 0, -6, 0), Qt::AlignRight | Qt::AlignVCenter,
                     QString::number(block.blockNumber() + 1));
    top += high;
    block = block.next();
  }
}

void JsonEditor::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Undo)) {
    Q_EMIT undo_asked();
  } else if (event->matches(QKeySequence::Redo)) {
    Q_EMIT redo_asked();
  } else {
    QPlainTextEdit::keyPressEvent(event);
  }
}

void JsonEditor::resizeEvent(QResizeEvent* event) {
  QPlainTextEdit::resizeEvent(event);
  place_gutter();
}

void JsonEditor::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) {
    event->ignore();  // the window handles it
  } else {
    QPlainTextEdit::dragEnterEvent(event);
  }
}

void JsonEditor::changeEvent(QEvent* event) {
  QPlainTextEdit::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) show_mark();
}

void JsonEditor::place_gutter() {
  setViewportMargins(gutter_width(), 0, 0, 0);
  const QRect inside = contentsRect();
  gutter_->setGeometry(inside.left(), inside.top(), gutter_width(), inside.height());
}

void JsonEditor::show_mark() {
  QList<QTextEdit::ExtraSelection> marks;
  const QTextBlock block = document()->findBlockByNumber(marked_ - 1);
  if (marked_ > 0 && block.isValid()) {
    QTextEdit::ExtraSelection mark;
    QColor colour = alarm_colour(palette());
    colour.setAlphaF(0.2F);
    mark.format.setBackground(colour);
    mark.format.setProperty(QTextFormat::FullWidthSelection, true);
    mark.cursor = QTextCursor(block);
    marks.append(mark);
  }
  setExtraSelections(marks);
}

}  // namespace trainyard
