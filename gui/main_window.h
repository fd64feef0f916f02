// The main window. It owns the document, the presenters and the pages, and connects them: it
// carries out what one page asks for, such as a simulation, and shows it on another.
#pragma once

#include <QMainWindow>
#include <QTimer>
#include <filesystem>
#include <memory>

#include "model/expected.h"

class QLabel;
class QMenu;
class QTabWidget;

namespace trainyard {

class AccuracyCheck;
class AccuracyPage;
class Execution;
class ExecutePage;
class Explore;
class ExplorePage;
class FileWatch;
class PlanPage;
class PlanSearch;
class Recovery;
class RunLives;
class ScenarioDocument;
class ScenarioPage;
class StepPlay;
class SweepPage;
class SweepRun;
class TimelinePage;
enum class DroppedFile;
struct Candidate;
struct Plan;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(QWidget* parent = nullptr);
  ~MainWindow() override;

  // Opens the file as the document. If it cannot be read, the status bar says so, the document
  // stays and the result is false.
  bool open_file(const std::filesystem::path& file);
  // Opens a file of any kind that the window can show, on the page for that kind.
  Expected<void> open(const std::filesystem::path& file);
  // Opens a file named on the command line. If it cannot be opened, a dialog says so.
  void open_at_start(const std::filesystem::path& file);
  void open_example();
  bool save_to(const std::filesystem::path& file);
  // Writes the document with this plan to another file; the open document stays as it is.
  bool export_plan(const Candidate& candidate, const std::filesystem::path& file);
  // Asks whether to restore the unsaved work of a program that died; false: there is none.
  bool offer_recovery();

  ScenarioDocument& document() { return *document_; }
  Explore& explore() { return *explore_; }
  AccuracyCheck& accuracy() { return *accuracy_; }
  Execution& execution() { return *execution_; }
  TimelinePage& timeline() { return *timeline_page_; }
  void show_page(QWidget* page);
  void show_page_at(int place);
  // Simulates the plan of the Explore page with the options of the Timeline page.
  void simulate_explored();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void make_pages();
  void make_execute_page();
  void make_menus();
  void make_file_menu();
  void make_view_menu();
  void make_help_menu();
  void show_document();
  void show_title();
  void autosave();
  void write_plan(const Plan& plan);
  void say(const QString& message);
  void choose_file();
  void open_or_say(const std::filesystem::path& file);
  void take(const std::filesystem::path& file);  // a file that was dropped on the window
  Expected<void> open_document(const std::filesystem::path& file);
  Expected<void> open_sweep(const std::filesystem::path& file);
  Expected<void> show_on_page(DroppedFile kind, const std::filesystem::path& file);
  void end_editing();
  bool may_overwrite();  // asks the user if another program has changed the file
  void offer_reload();   // if another program has changed the file
  bool save();
  bool save_as();
  bool may_leave();  // asks the user if there are unsaved changes
  void show_recent();
  void add_recent(const std::filesystem::path& file);
  void explore_plan(const Candidate& candidate);
  void live_explored();
  void run_explored();
  void export_selected();
  void remember_layout();
  void restore_layout();

  ScenarioDocument* document_;
  Explore* explore_;
  PlanSearch* search_;
  StepPlay* play_;
  AccuracyCheck* accuracy_;
  RunLives* lives_;
  Execution* execution_;
  SweepRun* sweep_;
  ScenarioPage* scenario_page_ = nullptr;
  ExplorePage* explore_page_ = nullptr;
  PlanPage* plan_page_ = nullptr;
  TimelinePage* timeline_page_ = nullptr;
  AccuracyPage* accuracy_page_ = nullptr;
  ExecutePage* execute_page_ = nullptr;
  SweepPage* sweep_page_ = nullptr;
  QTabWidget* pages_;
  QMenu* recent_ = nullptr;
  QAction *undo_ = nullptr, *redo_ = nullptr;
  std::unique_ptr<Recovery> recovery_;
  QTimer autosave_;
  FileWatch* watch_;
};

}  // namespace trainyard
