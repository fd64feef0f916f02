// Answers many variations of the open scenario into a result file, and shows the points of a result
// file, also while it fills: as a heat map or lines over any two keys, and as a table. Picture and
// table share one selection.
#pragma once

#include <QWidget>

class QCheckBox;
class QComboBox;
class QLabel;
class QProgressBar;
class QPushButton;
class QSplitter;
class QStackedWidget;
class QTableView;

namespace trainyard {

class HeatMap;
class LineChart;
class ScenarioDocument;
class SweepForm;
struct SweepDraft;
class SweepRun;
class SweepTable;
struct CellChoice;
struct SweepQuestion;

class SweepPage : public QWidget {
  Q_OBJECT
 public:
  SweepPage(ScenarioDocument& document, SweepRun& run, QWidget* parent = nullptr);

  void show_draft(const SweepDraft& draft);

 private:
  QWidget* make_builder();
  QWidget* make_bar();
  QWidget* make_picture();
  QWidget* make_choices();
  void make_table();
  SweepQuestion question() const;
  CellChoice choice() const;
  void choose_results();
  void choose_document();
  void open_results();
  void show_running(bool runs);
  QString age_of_points() const;
  void show_status();
  void show_points();
  void show_picture();
  void show_selection();
  void select_point(int column, int row);

  ScenarioDocument& document_;
  int started_of_ = 0, points_of_ = 0;  // number of the document
  SweepRun& run_;
  SweepForm* form_;
  QPushButton *start_, *cancel_, *save_, *open_;
  QProgressBar* progress_;
  QLabel* status_;
  QComboBox *picture_, *figure_, *value_, *x_, *y_;
  QCheckBox* fitting_;
  HeatMap* heat_;
  LineChart* lines_;
  QLabel* partial_;  // says that the picture shows only a part of the points
  QStackedWidget* pictures_;
  SweepTable* model_;
  QTableView* table_;
  QSplitter *results_, *splitter_;
};

}  // namespace trainyard
