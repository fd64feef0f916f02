// A slider or a list for every key of a plan, limited to the values that are legal now.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/presenters/plan/explore.h"

class QComboBox;
class QGridLayout;
class QLabel;
class QSlider;

namespace trainyard {

class PlanControls : public QWidget {
  Q_OBJECT
 public:
  explicit PlanControls(QWidget* parent = nullptr);

  // Controls come when there is a plan, later than what is below them: Tab reaches them after
  // `before`.
  void follow(QWidget& before) { before_ = &before; }
  void show_controls(const std::vector<ExploreControl>& controls);

 Q_SIGNALS:
  void chosen(const QString& key, int at);

 private:
  struct Row {
    QLabel* label = nullptr;
    QLabel* value = nullptr;     // of a slider
    QSlider* slider = nullptr;   // either this
    QComboBox* names = nullptr;  // or this
  };
  void add_row(const ExploreControl& control);
  static QWidget* input_of(const Row& row);
  static void show_row(const Row& row, const ExploreControl& control);

  QGridLayout* grid_;
  QWidget* before_ = nullptr;
  std::vector<Row> rows_;
};

}  // namespace trainyard
