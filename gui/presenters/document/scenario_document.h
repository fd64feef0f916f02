// The document that the window shows: its text with undo, the file it came from, and what reading
// it gave: a question that can be answered, or the line that is wrong. Every edit, by form or by
// text, goes through here.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QString>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gui/presenters/document/text_history.h"
#include "model/expected.h"

namespace trainyard {

struct Plan;
struct Question;

struct DocumentProblem {
  QString message;
  int line = 0;  // 0: in another document, or in none
  std::string pointer;
  bool is_of_window = false;  // the document is right, but not answered here
};

class ScenarioDocument : public QObject {
  Q_OBJECT
 public:
  explicit ScenarioDocument(QObject* parent = nullptr);
  ~ScenarioDocument() override;

  // Whatever the file says is shown; only one that cannot be read is an error.
  Expected<void> open(const std::filesystem::path& file);
  // A text that no file has.
  void start(std::string text);
  // As if it had been open and edited: `saved` is what the file had then.
  void recover(std::string text, const std::filesystem::path& file, std::string saved);
  Expected<void> save(const std::filesystem::path& file);

  const std::string& text() const { return history_.text(); }
  const std::filesystem::path& file() const { return file_; }  // empty: none yet
  QString title() const;
  // Whether the file is not any more what was read from it or written to it.
  bool changed_on_disk() const;
  // Its file was deleted: what is here is all there is of it.
  bool is_gone() const;
  bool modified() const { return text() != saved_; }
  const std::string& saved() const { return saved_; }

  enum class Edit { whole, keystroke };
  void set_text(std::string text, Edit edit = Edit::whole);
  // What was typed into a key of the form; an error leaves the text as it was.
  Expected<void> set_value(std::string_view pointer, std::string_view typed);
  void set_plan(const Plan& plan);
  // A document of any kind, or a Hugging Face config, as part of this one; a scenario is opened
  // where `may_leave` says that this one may go.
  Expected<void> take(const std::filesystem::path& file, const std::function<bool()>& may_leave);
  // The text with that plan, for a document at `destination`.
  Expected<std::string> text_with(const Plan& plan, const std::filesystem::path& destination) const;

  bool can_undo() const { return history_.can_undo(); }
  bool can_redo() const { return history_.can_redo(); }
  void undo();
  void redo();

  // Of the text as it is: null while it is wrong, and then there is a problem.
  const std::shared_ptr<const Question>& question() const { return question_; }
  const DocumentProblem& problem() const { return problem_; }
  // Whether an answer to that question, which was this document's, is one to the text as it is: it
  // is where the plan is another.
  bool still_asks(const std::shared_ptr<const Question>& question) const;
  // What stands before an answer: nothing, or that the document has changed since.
  QString age_of(const std::shared_ptr<const Question>& question) const;

 Q_SIGNALS:
  void replaced();  // by another document; before changed()
  void changed();   // text, question and problem
  void file_changed();

 private:
  void replace(std::string text, const std::filesystem::path& file);
  void read();
  std::filesystem::path place() const;  // what paths are relative to

  TextHistory history_;
  std::string saved_;
  std::filesystem::path file_;
  std::shared_ptr<const Question> question_;
  // Questions that answers may still have, and what was asked.
  struct Asked {
    std::weak_ptr<const Question> question;
    std::string text;
  };
  std::vector<Asked> asked_;
  DocumentProblem problem_;
  QElapsedTimer last_keystroke_;
};

}  // namespace trainyard
