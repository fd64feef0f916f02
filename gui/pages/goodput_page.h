// Simulated lives of the whole run: where its time goes, when it ends, and the best interval
// between checkpoints.
#pragma once

#include <QWidget>

class QLabel;
class QProgressBar;
class QPushButton;
class QSplitter;
class QTreeView;

namespace trainyard {

class BreakdownBar;
class Explore;
class Histogram;
class LossModel;
class RunLives;
class ScenarioDocument;

class GoodputPage : public QWidget {
  Q_OBJECT
 public:
  GoodputPage(ScenarioDocument& document, Explore& explore, RunLives& lives,
              QWidget* parent = nullptr);

 Q_SIGNALS:
  void simulate_asked();

 private:
  QWidget* make_interval();
  QWidget* make_losses();
  void show_answer();
  void show_summary();
  void show_interval();
  void use_interval();

  ScenarioDocument& document_;
  Explore& explore_;
  RunLives& lives_;
  QPushButton *simulate_, *cancel_;
  QProgressBar* progress_;
  QLabel *summary_, *interval_;
  QPushButton* use_interval_;
  BreakdownBar* losses_;
  LossModel* model_;
  QTreeView* tree_;
  QLabel* spread_;  // heading of the histogram
  Histogram* dates_;
  QSplitter* splitter_;
};

}  // namespace trainyard
