// A plan that the user changes by hand: controls at the left, beside them its estimate, which
// follows at once, remedies that would help, and pinned variants to compare with.
#pragma once

#include <QWidget>

class QLabel;
class QListWidget;
class QListWidgetItem;
class QPushButton;
class QSplitter;
class QTableView;

namespace trainyard {

class AnswerCards;
class BreakdownBar;
class Explore;
class MemoryBars;
class PlanControls;
class ScenarioDocument;
class VariantsModel;

class ExplorePage : public QWidget {
  Q_OBJECT
 public:
  ExplorePage(ScenarioDocument& document, Explore& explore, QWidget* parent = nullptr);

 Q_SIGNALS:
  void use_asked();       // to make the plan that of the scenario
  void simulate_asked();  // to simulate the plan and show its timeline

 private:
  void show_answer();
  void show_remedies();
  void take_remedy(const QListWidgetItem* item);
  QWidget* make_controls();
  QWidget* make_answer();
  QWidget* make_variants();

  ScenarioDocument& document_;
  Explore& explore_;
  PlanControls* controls_;
  QLabel* plan_;
  AnswerCards* cards_;
  BreakdownBar* breakdown_;
  MemoryBars* memory_;
  QLabel* limits_;
  QListWidget* remedies_;
  QTableView* table_;
  VariantsModel* variants_;
  QPushButton *use_, *pin_;
  QSplitter* splitter_;
};

}  // namespace trainyard
