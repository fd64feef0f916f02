// The planner's search: live progress, its plans as a table and as a scatter with one selection,
// and why a plan lost.
#pragma once

#include <QWidget>
#include <vector>

class QComboBox;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QSpinBox;
class QSplitter;
class QTableView;

namespace trainyard {

class CandidateFilter;
class CandidateModel;
class PlanSearch;
class ScenarioDocument;
class Scatter;
struct Candidate;
struct SearchProgress;

class PlanPage : public QWidget {
  Q_OBJECT
 public:
  PlanPage(ScenarioDocument& document, PlanSearch& search, QWidget* parent = nullptr);

  // nullptr: no plan is selected.
  const Candidate* selected() const;

 Q_SIGNALS:
  void explore_asked();
  void simulate_asked();
  void run_asked();
  void use_asked();
  void export_asked();

 private:
  QWidget* make_bar();
  QWidget* make_table();
  QWidget* make_picture();
  QWidget* make_actions();
  void start();
  void show_progress(const SearchProgress& progress);
  void show_started();
  void show_answer();
  void show_status();
  void show_scatter();
  void show_selection();
  void show_matches();
  void select_row(int row);

  ScenarioDocument& document_;
  PlanSearch& search_;
  QComboBox *objective_, *axis_x_, *axis_y_;
  QSpinBox* top_;
  QPushButton *start_, *cancel_;
  QProgressBar* progress_;
  QLabel *status_, *why_;
  QLineEdit* filter_text_;
  QLabel* matches_;
  CandidateModel* model_;
  CandidateFilter* filter_;
  QTableView* table_;
  Scatter* scatter_;
  // Actions that need the scenario of the search. Declared before actions_, whose making fills it.
  std::vector<QPushButton*> of_this_scenario_;
  QWidget* actions_;
  QSplitter* splitter_;
};

}  // namespace trainyard
