#include "gui/main_window.h"

#include <QAbstractButton>
#include <QActionGroup>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFile>
#include <QFileDialog>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QPointer>
#include <QPushButton>
#include <QSettings>
#include <QSplitter>
#include <QStandardPaths>
#include <QStatusBar>
#include <QTabWidget>
#include <QTableView>

#include "gui/pages/accuracy_page.h"
#include "gui/pages/execute_page.h"
#include "gui/pages/explore_page.h"
#include "gui/pages/goodput_page.h"
#include "gui/pages/plan_page.h"
#include "gui/pages/save_dialog.h"
#include "gui/pages/scenario_page.h"
#include "gui/pages/sweep_page.h"
#include "gui/pages/table_copy.h"
#include "gui/pages/timeline_page.h"
#include "gui/pages/topology_page.h"
#include "gui/presenters/accuracy_check.h"
#include "gui/presenters/document/dropped_file.h"
#include "gui/presenters/document/file_watch.h"
#include "gui/presenters/document/recovery.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/execution/execution.h"
#include "gui/presenters/plan/explore.h"
#include "gui/presenters/plan/plan_search.h"
#include "gui/presenters/run_lives.h"
#include "gui/presenters/sweep/sweep_run.h"
#include "gui/presenters/text.h"
#include "gui/presenters/timeline/step_play.h"
#include "gui/theme.h"
#include "planner/request.h"
#include "scenarios/json/output_file.h"
#include "scenarios/question.h"
#include "scenarios/sweep/sweep_draft.h"
#include "simulator/step.h"

namespace trainyard {
namespace {

constexpr int kAutosaveAfter = 400;  // ms after the last change
constexpr int kMostRecent = 10;
constexpr int kSayFor = 15000;                             // ms
constexpr const char* kChangedOnDisk = "changed_on_disk";  // the box, so that only one is open

std::filesystem::path recovery_folder() {
  const QString data = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation);
  return path_of(data) / "recovery";
}

}  // namespace

MainWindow::MainWindow(QWidget* parent)
    : QMainWindow(parent),
      document_(new ScenarioDocument(this)),
      explore_(new Explore(this)),
      search_(new PlanSearch(this)),
      play_(new StepPlay(this)),
      accuracy_(new AccuracyCheck(this)),
      lives_(new RunLives(this)),
      execution_(new Execution(this)),
      sweep_(new SweepRun(this)),
      pages_(new QTabWidget),
      recovery_(std::make_unique<Recovery>(recovery_folder())),
      watch_(new FileWatch(this)) {
  setAcceptDrops(true);
  resize(1280, 800);
  make_pages();
  make_menus();
  autosave_.setSingleShot(true);
  autosave_.setInterval(kAutosaveAfter);
  connect(&autosave_, &QTimer::timeout, this, &MainWindow::autosave);
  connect(document_, &ScenarioDocument::replaced, explore_, &Explore::leave_document);
  connect(document_, &ScenarioDocument::replaced, this, [this] {
    say(tr("%1 is open.").arg(document_->title()));  // the page in front may not show it
  });
  connect(document_, &ScenarioDocument::changed, this, &MainWindow::show_document);
  connect(document_, &ScenarioDocument::file_changed, this, &MainWindow::show_title);
  connect(document_, &ScenarioDocument::file_changed, this,
          [this] { watch_->watch(document_->file()); });
  connect(watch_, &FileWatch::written, this, &MainWindow::offer_reload);
  restore_layout();
  show_document();
}

MainWindow::~MainWindow() = default;

void MainWindow::make_pages() {
  scenario_page_ = new ScenarioPage(*document_);
  explore_page_ = new ExplorePage(*document_, *explore_);
  plan_page_ = new PlanPage(*document_, *search_);
  timeline_page_ = new TimelinePage(*document_, *explore_, *play_);
  pages_->setDocumentMode(true);
  pages_->addTab(scenario_page_, tr("Scenario"));
  pages_->addTab(explore_page_, tr("Explore"));
  pages_->addTab(plan_page_, tr("Plan"));
  pages_->addTab(timeline_page_, tr("Timeline"));
  pages_->addTab(new TopologyPage(*explore_), tr("Topology"));
  accuracy_page_ = new AccuracyPage(*accuracy_);
  pages_->addTab(accuracy_page_, tr("Accuracy"));
  sweep_page_ = new SweepPage(*document_, *sweep_);
  pages_->addTab(sweep_page_, tr("Sweep"));
  auto* goodput_page = new GoodputPage(*document_, *explore_, *lives_);
  pages_->addTab(goodput_page, tr("Goodput"));
  connect(goodput_page, &GoodputPage::simulate_asked, this, &MainWindow::live_explored);
  make_execute_page();
  setCentralWidget(pages_);
  for (QTableView* table : findChildren<QTableView*>()) make_copyable(*table);
  connect(explore_page_, &ExplorePage::use_asked, this,
          [this] { write_plan(explore_->candidate()->plan); });
  connect(plan_page_, &PlanPage::use_asked, this,
          [this] { write_plan(plan_page_->selected()->plan); });
  connect(plan_page_, &PlanPage::explore_asked, this,
          [this] { explore_plan(*plan_page_->selected()); });
  connect(plan_page_, &PlanPage::simulate_asked, this, [this] {
    explore_->set_request(request_of(plan_page_->selected()->plan));
    simulate_explored();
  });
  connect(plan_page_, &PlanPage::run_asked, this, [this] {
    explore_->set_request(request_of(plan_page_->selected()->plan));
    show_page(execute_page_);
  });
  connect(explore_page_, &ExplorePage::simulate_asked, this, &MainWindow::simulate_explored);
  connect(timeline_page_, &TimelinePage::simulate_asked, this, &MainWindow::simulate_explored);
  connect(timeline_page_, &TimelinePage::said, this, &MainWindow::say);
  connect(plan_page_, &PlanPage::export_asked, this, &MainWindow::export_selected);
}

void MainWindow::make_execute_page() {
  execute_page_ = new ExecutePage(*execution_, *explore_);
  pages_->addTab(execute_page_, tr("Execute"));
  connect(execute_page_, &ExecutePage::run_asked, this, &MainWindow::run_explored);
  connect(execute_page_, &ExecutePage::said, this, &MainWindow::say);
  connect(execute_page_, &ExecutePage::timeline_asked, this, [this] {
    play_->open(execution_->trace());
    show_page(timeline_page_);
  });
  connect(execute_page_, &ExecutePage::accuracy_asked, this, [this] {
    accuracy_->start({execution_->profile()});
    show_page(accuracy_page_);
  });
}

void MainWindow::make_menus() {
  make_file_menu();
  QMenu* edit = menuBar()->addMenu(tr("&Edit"));
  undo_ = edit->addAction(tr("&Undo"), QKeySequence::Undo, document_, &ScenarioDocument::undo);
  redo_ = edit->addAction(tr("&Redo"), document_, &ScenarioDocument::redo);
  redo_->setShortcuts(QKeySequence::Redo);  // some desktops have several
  make_view_menu();
  make_help_menu();
}

void MainWindow::make_file_menu() {
  QMenu* file = menuBar()->addMenu(tr("&File"));
  file->addAction(tr("&New from the example"), QKeySequence::New, this, [this] {
    if (may_leave()) open_example();
  });
  file->addAction(tr("&Open …"), QKeySequence::Open, this, &MainWindow::choose_file);
  recent_ = file->addMenu(tr("Open &recent"));
  // Connected to the menu above: a submenu that is disabled never emits aboutToShow.
  connect(file, &QMenu::aboutToShow, this, &MainWindow::show_recent);
  file->addSeparator();
  file->addAction(tr("&Save"), QKeySequence::Save, this, &MainWindow::save);
  file->addAction(tr("Save &as …"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S), this,
                  &MainWindow::save_as);
  file->addSeparator();
  file->addAction(tr("&Quit"), QKeySequence::Quit, this, &QWidget::close);
}

void MainWindow::make_view_menu() {
  QMenu* view = menuBar()->addMenu(tr("&View"));
  for (int i = 0; i < pages_->count(); ++i) {
    view->addAction(pages_->tabText(i),
                    QKeySequence(Qt::CTRL | static_cast<Qt::Key>(Qt::Key_1 + i)), this,
                    [this, i] { show_page_at(i); });
  }
  view->addSeparator();
  QMenu* colours = view->addMenu(tr("&Colours"));
  auto* one_of_them = new QActionGroup(colours);
  const std::pair<QString, Theme> themes[] = {{tr("As the desktop"), Theme::desktop},
                                              {tr("Light"), Theme::light},
                                              {tr("Dark"), Theme::dark}};
  for (const auto& [name, theme] : themes) {
    QAction* action = colours->addAction(name, this, [chosen = theme] { set_theme(chosen); });
    action->setCheckable(true);
    action->setChecked(theme == chosen_theme());
    one_of_them->addAction(action);
  }
}

void MainWindow::make_help_menu() {
  QMenu* help = menuBar()->addMenu(tr("&Help"));
  help->addAction(tr("&About Trainyard"), this, [this] {
    auto* about = new QMessageBox(
        QMessageBox::Information, tr("About Trainyard"),
        tr("Trainyard %1 plans the training of large models: how long a step takes, whether it "
           "fits, what it costs.\n\nWhat the pages do is in docs/desktop.md, every key of a "
           "scenario in docs/scenarios.md.")
            .arg(QCoreApplication::applicationVersion()),
        QMessageBox::Close, this);
    about->setObjectName(QStringLiteral("about"));
    about->setAttribute(Qt::WA_DeleteOnClose);
    about->open();
  });
}

void MainWindow::show_page(QWidget* page) { pages_->setCurrentWidget(page); }

void MainWindow::show_page_at(int place) { pages_->setCurrentIndex(place); }

bool MainWindow::open_file(const std::filesystem::path& file) {
  const auto opened = open_document(file);
  if (!opened) say(qt(opened.error()));
  return opened.has_value();
}

Expected<void> MainWindow::open_document(const std::filesystem::path& file) {
  return document_->open(file).map([&] { add_recent(file); });
}

Expected<void> MainWindow::open(const std::filesystem::path& file) {
  const DroppedFile kind = dropped_file(file);
  if (kind != DroppedFile::document) return show_on_page(kind, file);
  return may_leave() ? open_document(file) : Expected<void>{};
}

void MainWindow::open_or_say(const std::filesystem::path& file) {
  if (const auto opened = open(file); !opened) say(qt(opened.error()));
}

void MainWindow::open_at_start(const std::filesystem::path& file) {
  const auto opened = open(file);
  if (opened) return;
  auto* box = new QMessageBox(QMessageBox::Warning, tr("Not opened"),
                              tr("%1\nThe example is shown instead.").arg(qt(opened.error())),
                              QMessageBox::Ok, this);
  box->setObjectName(QStringLiteral("not_opened"));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->open();
}

// The scenario inside the sweep becomes a new document without a file, so that saving it does not
// overwrite the sweep.
Expected<void> MainWindow::open_sweep(const std::filesystem::path& file) {
  auto opened = opened_sweep(file, "scenario.json");
  if (!opened) return tl::unexpected(opened.error());
  if (!may_leave()) return {};
  document_->start(std::move(opened->scenario));
  sweep_page_->show_draft(opened->draft);
  show_page(sweep_page_);
  return {};
}

void MainWindow::open_example() {
  QFile example(QStringLiteral(":/example.json"));
  if (!example.open(QIODevice::ReadOnly)) return;
  document_->start(example.readAll().toStdString());
}

bool MainWindow::save_to(const std::filesystem::path& file) {
  const auto saved = document_->save(file);
  if (!saved) {
    say(qt(saved.error()));
    return false;
  }
  recovery_->discard();
  add_recent(file);
  say(tr("Saved."));
  return true;
}

bool MainWindow::export_plan(const Candidate& candidate, const std::filesystem::path& file) {
  const auto written = document_->text_with(candidate.plan, file).and_then([&](const auto& text) {
    return write_file(file, text);
  });
  say(written ? tr("Written to %1.").arg(path_text(file)) : qt(written.error()));
  return written.has_value();
}

bool MainWindow::offer_recovery() {
  const std::vector<RecoveryOffer> offers = recovery_->offers();
  if (offers.empty()) return false;
  const RecoveryOffer& offer = offers.front();
  auto* box =
      new QMessageBox(QMessageBox::Question, tr("Unsaved work"),
                      tr("The program ended without saving %1 (%2).")
                          .arg(offer.file.empty() ? tr("a new scenario") : path_text(offer.file),
                               offer.time.toString(Qt::ISODate)),
                      QMessageBox::NoButton, this);
  box->setObjectName(QStringLiteral("recovery"));
  box->setAttribute(Qt::WA_DeleteOnClose);
  auto* restore = box->addButton(tr("Restore"), QMessageBox::AcceptRole);
  box->addButton(tr("Throw away"), QMessageBox::DestructiveRole);
  // Escape and closing the box decide nothing: the next start asks again.
  const auto* later = box->addButton(tr("Ask again later"), QMessageBox::RejectRole);
  connect(box, &QMessageBox::buttonClicked, this,
          [this, offer, restore, later](const QAbstractButton* button) {
            if (static_cast<const void*>(button) == later) return;
            if (static_cast<const void*>(button) == restore) {
              document_->recover(offer.text, offer.file, offer.saved);
            }
            recovery_->forget(offer);
          });
  box->open();
  return true;
}

void MainWindow::show_document() {
  explore_->set_question(document_->question(), document_->problem().message);
  undo_->setEnabled(document_->can_undo());
  redo_->setEnabled(document_->can_redo());
  show_title();
  autosave_.start();
}

void MainWindow::show_title() {
  setWindowTitle(tr("%1[*] – Trainyard").arg(document_->title()));
  setWindowModified(document_->modified());
}

void MainWindow::autosave() {
  if (document_->modified() || document_->is_gone()) {
    recovery_->keep(document_->file(), document_->saved(), document_->text());
  } else {
    recovery_->discard();
  }
}

void MainWindow::write_plan(const Plan& plan) {
  document_->set_plan(plan);
  say(tr("The plan is written into the scenario. Undo takes it back."));
}

void MainWindow::say(const QString& message) { statusBar()->showMessage(message, kSayFor); }

void MainWindow::choose_file() {
  const QString file = QFileDialog::getOpenFileName(
      this, tr("Open"), QString(),
      tr("Scenarios, sweeps, traces, runs and results (*.json *.sqlite);;All files (*)"));
  if (!file.isEmpty()) open_or_say(path_of(file));
}

// Commits what is being typed into a field, so that it becomes part of the document. The field
// keeps the focus if it still exists.
void MainWindow::end_editing() {
  const QPointer<QWidget> typing = focusWidget();
  if (!typing) return;
  typing->clearFocus();
  if (typing && typing->isVisible() && focusWidget() == nullptr) typing->setFocus();
}

bool MainWindow::save() {
  end_editing();
  if (document_->file().empty()) return save_as();
  return may_overwrite() && save_to(document_->file());
}

bool MainWindow::may_overwrite() {
  if (!document_->changed_on_disk()) return true;
  QMessageBox box(
      QMessageBox::Warning, tr("Changed meanwhile"),
      tr("%1 was changed by another program since it was read here. Saving replaces that; "
         "reloading loses the changes made here.")
          .arg(document_->title()),
      QMessageBox::Save | QMessageBox::Cancel, this);
  box.setObjectName(QLatin1String(kChangedOnDisk));
  box.setDefaultButton(QMessageBox::Cancel);
  const QAbstractButton* reload = box.addButton(tr("Reload"), QMessageBox::DestructiveRole);
  const int answer = box.exec();
  if (box.clickedButton() == reload) open_file(document_->file());
  return answer == QMessageBox::Save;
}

void MainWindow::offer_reload() {
  if (document_->is_gone()) {
    say(tr("%1 is gone from the disk; saving writes it anew.").arg(document_->title()));
    autosave_.start();
  }
  const bool is_asked = findChild<QMessageBox*>(QLatin1String(kChangedOnDisk)) != nullptr;
  if (is_asked || !document_->changed_on_disk()) return;
  const QString loses =
      document_->modified() ? tr(" Reloading loses the changes made here.") : QString();
  auto* box =
      new QMessageBox(QMessageBox::Question, tr("Changed meanwhile"),
                      tr("%1 was changed by another program.").arg(document_->title()) + loses,
                      QMessageBox::NoButton, this);
  box->setObjectName(QLatin1String(kChangedOnDisk));
  box->setAttribute(Qt::WA_DeleteOnClose);
  const QAbstractButton* reload = box->addButton(tr("Reload"), QMessageBox::AcceptRole);
  box->addButton(tr("Keep what is here"), QMessageBox::RejectRole);
  connect(box, &QMessageBox::buttonClicked, this,
          [this, reload, file = document_->file()](const QAbstractButton* button) {
            if (button == reload) open_file(file);
          });
  box->open();
}

bool MainWindow::save_as() {
  end_editing();
  const std::filesystem::path file = ask_where_to_save(this, {.title = tr("Save the scenario"),
                                                              .name = path_text(document_->file()),
                                                              .types = tr("Documents (*.json)")});
  return !file.empty() && save_to(file);
}

bool MainWindow::may_leave() {
  end_editing();
  const bool is_gone = document_->is_gone();
  if (!document_->modified() && !is_gone) return true;
  const QString why = is_gone ? tr("%1 is gone from the disk; what is here is all there is of it.")
                              : tr("%1 has changes that are not saved.");
  const auto answer = QMessageBox::warning(
      this, tr("Unsaved changes"), why.arg(document_->title()),
      QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, QMessageBox::Save);
  return answer == QMessageBox::Discard || (answer == QMessageBox::Save && save());
}

void MainWindow::show_recent() {
  recent_->clear();
  const QStringList files = QSettings().value(QStringLiteral("recent")).toStringList();
  for (const QString& file : files) {
    recent_->addAction(file, this, [this, file] { open_or_say(path_of(file)); });
  }
  recent_->setEnabled(!files.isEmpty());
}

void MainWindow::add_recent(const std::filesystem::path& file) {
  QSettings settings;
  QStringList files = settings.value(QStringLiteral("recent")).toStringList();
  const QString whole = path_text(std::filesystem::absolute(file));
  files.removeAll(whole);
  files.prepend(whole);
  settings.setValue(QStringLiteral("recent"), files.mid(0, kMostRecent));
}

void MainWindow::explore_plan(const Candidate& candidate) {
  explore_->set_request(request_of(candidate.plan));
  show_page(explore_page_);
}

void MainWindow::simulate_explored() {
  if (!explore_->candidate()) {
    say(explore_->problem());
    return;
  }
  const StepOptions options{.grain = timeline_page_->grain(),
                            .fold = timeline_page_->fold(),
                            .conditions = explore_->question()->scenario.simulation};
  play_->start(explore_->question(), explore_->candidate()->plan, options);
  show_page(timeline_page_);
}

void MainWindow::live_explored() {
  if (explore_->candidate()) {
    lives_->start(explore_->question(), *explore_->candidate());
  } else {
    say(explore_->problem());
  }
}

// Starts a run of the explored plan. If there is none because the document is wrong, says so with
// its line instead.
void MainWindow::run_explored() {
  if (!explore_->candidate()) {
    const DocumentProblem& problem = document_->problem();
    const QString line = problem.line > 0 ? tr("Line %1: %2").arg(problem.line).arg(problem.message)
                                          : problem.message;
    execute_page_->say(line.isEmpty() ? explore_->problem() : line);
    return;
  }
  const auto text = document_->text_with(explore_->candidate()->plan, execution_->scenario_file());
  if (text) {
    execution_->run(*text, execute_page_->order());
  } else {
    execute_page_->say(qt(text.error()));
  }
}

void MainWindow::export_selected() {
  const std::filesystem::path file = ask_where_to_save(
      this, {.title = tr("Export the scenario with this plan"), .types = tr("Documents (*.json)")});
  if (!file.empty()) export_plan(*plan_page_->selected(), file);
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!may_leave()) {
    event->ignore();
    return;
  }
  remember_layout();
  autosave_.stop();
  recovery_->discard();
  event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls()) take(path_of(url.toLocalFile()));
  event->acceptProposedAction();
}

// A scenario is opened. Traces, measured runs, sweeps and their results are shown on their page.
// Any other document, such as a model or a node, becomes part of the open document.
void MainWindow::take(const std::filesystem::path& file) {
  const DroppedFile kind = dropped_file(file);
  const auto taken = kind == DroppedFile::document
                         ? document_->take(file, [this] { return may_leave(); })
                         : show_on_page(kind, file);
  if (taken) return;
  say(tr("%1 (scenarios and parts of them, sweeps and their results, traces, measured runs and "
         "profiles may be dropped)")
          .arg(qt(taken.error())));
}

// Requires: `kind` is not DroppedFile::document.
Expected<void> MainWindow::show_on_page(DroppedFile kind, const std::filesystem::path& file) {
  if (kind == DroppedFile::sweep) return open_sweep(file);
  if (kind == DroppedFile::sweep_results) {
    sweep_->open(file);
    show_page(sweep_page_);
  } else if (kind == DroppedFile::trace) {
    play_->open(file);
    say(tr("%1 is opened as a trace.").arg(path_text(file)));
    show_page(timeline_page_);
  } else {
    accuracy_->start({file});
    say(tr("%1 is opened as measured runs.").arg(path_text(file)));
    show_page(accuracy_page_);
  }
  return {};
}

void MainWindow::remember_layout() {
  QSettings settings;
  settings.setValue(QStringLiteral("geometry"), saveGeometry());
  settings.setValue(QStringLiteral("page"), pages_->currentIndex());
  for (const QSplitter* splitter : findChildren<QSplitter*>()) {
    settings.setValue(QStringLiteral("splitter/") + splitter->objectName(), splitter->saveState());
  }
}

void MainWindow::restore_layout() {
  const QSettings settings;
  restoreGeometry(settings.value(QStringLiteral("geometry")).toByteArray());
  pages_->setCurrentIndex(settings.value(QStringLiteral("page"), 0).toInt());
  for (QSplitter* splitter : findChildren<QSplitter*>()) {
    const QString key = QStringLiteral("splitter/") + splitter->objectName();
    splitter->restoreState(settings.value(key).toByteArray());
  }
}

}  // namespace trainyard
