// A document's text with line numbers and a mark at the line that is wrong. Undo is the document's,
// not the editor's, so that form and text share it.
#pragma once

#include <QPlainTextEdit>

namespace trainyard {

class JsonEditor : public QPlainTextEdit {
  Q_OBJECT
 public:
  explicit JsonEditor(QWidget* parent = nullptr);

  // Replaces only the part that differs, so that the cursor stays. The editor shows any line end as
  // a line feed and a no-break space as a space, but an edit leaves the rest of the text as it was.
  void show_text(const QString& text);
  // Marks a line with a message; line 0 clears the mark.
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
  QString text_;  // the text as its author wrote it
  int marked_ = 0;
  bool showing_ = false;
};

}  // namespace trainyard
