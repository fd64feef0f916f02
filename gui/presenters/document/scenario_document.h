// The document that the window shows: its text with undo, the file that it came from, and the
// result of reading it. That is either a Question, which pages can answer, or a DocumentProblem
// with the line that is wrong. Every edit, in the form or in the text, goes through this class.
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
  int line = 0;               // 0: the problem is in another document, or at no line
  std::string pointer;        // JSON pointer; empty: unknown
  bool is_of_window = false;  // the document is right, but the window cannot answer it
};

class ScenarioDocument : public QObject {
  Q_OBJECT
 public:
  explicit ScenarioDocument(QObject* parent = nullptr);
  ~ScenarioDocument() override;

  // Shows the file's text, right or wrong. An error only if it cannot be read or is too large.
  Expected<void> open(const std::filesystem::path& file);
  // Starts a new document that has no file.
  void start(std::string text);
  // Restores an edited document; `saved` is the text of its file when it was last read or written.
  void recover(std::string text, const std::filesystem::path& file, std::string saved);
  Expected<void> save(const std::filesystem::path& file);

  const std::string& text() const { return history_.text(); }
  const std::filesystem::path& file() const { return file_; }  // empty: none yet
  QString title() const;
  // Whether the file exists and differs from the text last read from it or written to it.
  bool changed_on_disk() const;
  // Whether its file was deleted, so that this document is the only copy.
  bool is_gone() const;
  bool modified() const { return text() != saved_; }
  const std::string& saved() const { return saved_; }

  enum class Edit { whole, keystroke };
  void set_text(std::string text, Edit edit = Edit::whole);
  // Sets a key to what was typed into the form. An error leaves the text as it was.
  Expected<void> set_value(std::string_view pointer, std::string_view typed);
  void set_plan(const Plan& plan);
  // Makes a document of any kind, or a Hugging Face config, part of this one. A scenario is opened
  // instead, if `may_leave` says that this document may be replaced.
  Expected<void> take(const std::filesystem::path& file, const std::function<bool()>& may_leave);
  // The text with that plan; relative paths in it are rewritten for a document at `destination`.
  Expected<std::string> text_with(const Plan& plan, const std::filesystem::path& destination) const;

  bool can_undo() const { return history_.can_undo(); }
  bool can_redo() const { return history_.can_redo(); }
  void undo();
  void redo();

  // The question of the present text; null while the text is wrong, and then there is a problem.
  const std::shared_ptr<const Question>& question() const { return question_; }
  const DocumentProblem& problem() const { return problem_; }
  // Whether an answer to `question`, an earlier question of this document, also answers the present
  // text. It does if the two texts differ in the plan alone.
  bool still_asks(const std::shared_ptr<const Question>& question) const;
  // Whether an earlier question is that of a document which was open before this one.
  bool is_of_another(const std::shared_ptr<const Question>& question) const;
  // A prefix for an answer to `question`: empty, or that the document has changed since, or that
  // another one was asked.
  QString age_of(const std::shared_ptr<const Question>& question) const;
  // A prefix for an answer to an earlier text, given the number() of its document.
  QString age_of(const std::string& text, int number) const;
  // Tells the documents apart that were open one after the other. A file that is read again is the
  // same document.
  int number() const { return number_; }

 Q_SIGNALS:
  void replaced();  // another document took its place; comes before changed()
  void changed();   // the text, and with it question and problem
  void file_changed();

 private:
  void replace(std::string text, const std::filesystem::path& file);
  void read();
  std::filesystem::path place() const;  // the file that relative paths are resolved against

  TextHistory history_;
  std::string saved_;
  std::filesystem::path file_;
  std::shared_ptr<const Question> question_;
  // Earlier questions that answers may still hold, with their text without the plan.
  struct Asked {
    std::weak_ptr<const Question> question;
    std::string text;
    int number = 0;  // of the document
  };
  const Asked* asked(const std::shared_ptr<const Question>& question) const;
  std::vector<Asked> asked_;
  int number_ = 0;
  DocumentProblem problem_;
  QElapsedTimer last_keystroke_;
};

}  // namespace trainyard
