#include "gui/presenters/document/scenario_document.h"

#include <algorithm>
#include <utility>

#include "gui/presenters/text.h"
#include "scenarios/editing.h"
#include "scenarios/json/file.h"
#include "scenarios/json/output_file.h"
#include "scenarios/question.h"
#include "scenarios/scenario_text.h"

namespace trainyard {
namespace {

constexpr qint64 kSameKeystrokes = 1000;  // keystrokes closer than this, in ms, are undone together
// A scenario is read again at every keystroke, so the limits are lower than those of the commands.
constexpr std::size_t kLargestDropped = std::size_t{1} << 20;
constexpr std::size_t kLargestScenario = std::size_t{128} << 10;

// "/plan/tensor_parallel" of "a.json: /plan/tensor_parallel".
std::string pointer_of(const std::string& where) {
  const std::size_t start = where.find(": /");
  if (start != std::string::npos) return where.substr(start + 2);
  return where.starts_with('/') ? where : std::string();
}

QString older_words(bool is_of_another) {
  return is_of_another ? ScenarioDocument::tr("Of another scenario than the one that is open: ")
                       : ScenarioDocument::tr("Of the scenario before the last change: ");
}

}  // namespace

ScenarioDocument::ScenarioDocument(QObject* parent) : QObject(parent) {}
ScenarioDocument::~ScenarioDocument() = default;

Expected<void> ScenarioDocument::open(const std::filesystem::path& file) {
  auto text = read_file(file, kLargestDropped);
  if (!text) return failure(file.string(), text.error().message);
  if (text->size() > kLargestScenario) {
    return failure(file.string(), "has " + std::to_string(text->size()) +
                                      " bytes; allowed in the window: a scenario of at most " +
                                      std::to_string(kLargestScenario));
  }
  saved_ = *text;
  replace(*std::move(text), file);
  return {};
}

void ScenarioDocument::start(std::string text) {
  saved_ = text;
  replace(std::move(text), {});
}

void ScenarioDocument::recover(std::string text, const std::filesystem::path& file,
                               std::string saved) {
  saved_ = std::move(saved);
  replace(std::move(text), file);
}

Expected<void> ScenarioDocument::save(const std::filesystem::path& file) {
  // Relative paths are rewritten for the new place; a text that is wrong is saved unchanged.
  std::string moved = scenario_at(text(), place(), file).value_or(text());
  if (auto written = write_file(file, moved); !written) return written;
  file_ = file;
  saved_ = moved;
  history_.add(std::move(moved));
  read();
  Q_EMIT file_changed();
  Q_EMIT changed();
  return {};
}

bool ScenarioDocument::changed_on_disk() const {
  std::error_code unknown;
  if (file_.empty() || !std::filesystem::exists(file_, unknown)) return false;
  const auto on_disk = read_file(file_, kLargestDropped);
  return !on_disk || *on_disk != saved_;
}

bool ScenarioDocument::is_gone() const {
  std::error_code unknown;
  return !file_.empty() && !std::filesystem::exists(file_, unknown) && !unknown;
}

QString ScenarioDocument::title() const {
  return file_.empty() ? tr("New scenario") : path_text(file_.filename());
}

void ScenarioDocument::set_text(std::string text, Edit edit) {
  if (text == this->text()) return;
  const bool joins = edit == Edit::keystroke && last_keystroke_.isValid() &&
                     last_keystroke_.elapsed() < kSameKeystrokes;
  history_.add(std::move(text), joins);
  last_keystroke_.invalidate();
  if (edit == Edit::keystroke) last_keystroke_.start();
  read();
  Q_EMIT changed();
}

Expected<void> ScenarioDocument::set_value(std::string_view pointer, std::string_view typed) {
  return with_typed(text(), pointer, typed).map([this](std::string edited) {
    set_text(std::move(edited));
  });
}

void ScenarioDocument::set_plan(const Plan& plan) {
  if (auto edited = with_plan(text(), plan)) set_text(*std::move(edited));
}

Expected<std::string> ScenarioDocument::text_with(const Plan& plan,
                                                  const std::filesystem::path& destination) const {
  return with_plan(text(), plan).and_then([&](const std::string& planned) {
    return scenario_at(planned, place(), destination);
  });
}

Expected<void> ScenarioDocument::take(const std::filesystem::path& file,
                                      const std::function<bool()>& may_leave) {
  const auto shown = read_file(file, kLargestDropped);
  if (!shown) return failure(file.string(), shown.error().message);
  auto taken = with_document(text(), place(), file);
  if (!taken) return tl::unexpected(taken.error());
  if (taken->empty()) return may_leave() ? open(file) : Expected<void>{};
  set_text(*std::move(taken));
  return {};
}

bool ScenarioDocument::still_asks(const std::shared_ptr<const Question>& question) const {
  if (question == question_) return true;
  const Asked* then = asked(question);
  const Asked* now = question_ ? asked(question_) : nullptr;
  return then != nullptr && now != nullptr && then->text == now->text;
}

const ScenarioDocument::Asked* ScenarioDocument::asked(
    const std::shared_ptr<const Question>& question) const {
  const auto found = std::ranges::find_if(
      asked_, [&](const Asked& one) { return one.question.lock() == question; });
  return found == asked_.end() ? nullptr : &*found;
}

bool ScenarioDocument::is_of_another(const std::shared_ptr<const Question>& question) const {
  const Asked* then = asked(question);
  return then != nullptr && then->number != number_ && !still_asks(question);
}

QString ScenarioDocument::age_of(const std::shared_ptr<const Question>& question) const {
  return still_asks(question) ? QString() : older_words(is_of_another(question));
}

QString ScenarioDocument::age_of(const std::string& text, int number) const {
  return text == this->text() ? QString() : older_words(number != number_);
}

void ScenarioDocument::undo() {
  history_.undo();
  last_keystroke_.invalidate();
  read();
  Q_EMIT changed();
}

void ScenarioDocument::redo() {
  history_.redo();
  last_keystroke_.invalidate();
  read();
  Q_EMIT changed();
}

void ScenarioDocument::replace(std::string text, const std::filesystem::path& file) {
  if (file.empty() || file != file_) ++number_;
  history_ = TextHistory(std::move(text));
  file_ = file;
  last_keystroke_.invalidate();
  read();
  Q_EMIT replaced();
  Q_EMIT file_changed();
  Q_EMIT changed();
}

void ScenarioDocument::read() {
  auto question = question_of(text(), place());
  if (question && question->scenario.plan) {
    // Only making the plan shows whether its degrees suit the job.
    const auto plan = requested_plan(question->scenario, question->job);
    if (!plan) question = tl::unexpected(plan.error());
  }
  problem_ = {};
  question_ = nullptr;
  if (question) {
    question_ = std::make_shared<const Question>(*std::move(question));
    std::erase_if(asked_, [](const Asked& asked) { return asked.question.expired(); });
    asked_.push_back({question_, text_without_plan(text()), number_});
    return;
  }
  if (const auto scenario = parse_scenario_at(text(), place()); scenario && scenario->unlike) {
    problem_ = {
        .message = tr("The document is right, but its cluster has groups of unlike nodes, "
                      "which the window answers on the Sweep page alone. The commands plan, "
                      "estimate and goodput of trainyard answer it."),
        .is_of_window = true};
    return;
  }
  const Error& error = question.error();
  problem_ = {qt(error), line_of(text(), place(), error), pointer_of(error.where), false};
}

std::filesystem::path ScenarioDocument::place() const {
  return file_.empty() ? std::filesystem::path("scenario.json") : file_;
}

}  // namespace trainyard
