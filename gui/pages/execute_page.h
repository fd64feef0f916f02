// Runs and calibrations on this machine: controls above, then the ranks of the run and its log.
// Buttons take what a run measured to the Timeline and Accuracy pages.
#pragma once

#include <QWidget>

class QCheckBox;
class QComboBox;
class QLabel;
class QPlainTextEdit;
class QProgressBar;
class QPushButton;
class QSpinBox;
class QSplitter;
class QTableView;

namespace trainyard {

class Execution;
class Explore;
class RankModel;
struct RunOrder;

class ExecutePage : public QWidget {
  Q_OBJECT
 public:
  ExecutePage(Execution& execution, const Explore& explore, QWidget* parent = nullptr);

  // The order that the controls describe, without the name of the scenario.
  RunOrder order() const;
  // Shows a problem in place of how the last run ended.
  void say(const QString& problem);

 Q_SIGNALS:
  void run_asked();
  void timeline_asked();
  void accuracy_asked();
  void said(const QString& message);

 private:
  QWidget* make_controls();
  QWidget* make_bar();
  QWidget* make_results();
  void make_lists();
  void calibrate();
  void choose_destination();
  void show_hint();
  void show_started();
  void show_look();
  void widen_columns();
  void show_finished();

  Execution& execution_;
  const Explore& explore_;
  QComboBox* backend_;
  QSpinBox *ranks_, *steps_, *warmup_, *limit_;
  QCheckBox* verify_;
  QPushButton *run_, *calibrate_, *cancel_, *timeline_, *accuracy_, *save_;
  QProgressBar* progress_;
  QLabel *hint_, *summary_, *alert_;
  RankModel* model_;
  QTableView* table_;
  QPlainTextEdit* log_;
  QSplitter* splitter_;
};

}  // namespace trainyard
