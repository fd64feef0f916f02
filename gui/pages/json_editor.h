// A document's text with line numbers and a mark at the line that is wrong. Undo is the document's,
// not the editor's, so that form and text share it.
#pragma once

#include <QPlainTextEdit>

namespace trainyard {

class JsonEditor : public QPlainTextEdit {
  Q_OBJECT
 public:
  explicit JsonEditor(QWidget* parent = nullptr);

  // Only what differs is replaced, so that the cursor stays. An edit changes what it changes: line
  // ends and no-break spaces elsewhere stay as the text has them, though the editor does not.
  void show_text(const QString& text);
  // 0: none.
  void mark_line(int line, const QString& message);
  int marked_line() const { return marked_; }
  void go_to_line(int line);

  int gutter_width() const;
  void paint_gutter(const QPaintEvent& event);

 Q_SIGNALS:
  void edited(const QString& text);
  void undo_asked();
  void redo_asked();

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void take_change(int place, int removed, int added);
  void place_gutter();
  void show_mark();

  QWidget* gutter_;
  QString text_;  // that is shown
  int marked_ = 0;
  bool showing_ = false;
};

}  // namespace trainyard
