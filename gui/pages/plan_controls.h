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

  // Makes Tab reach the controls after `before`. By default it would reach them last, since they
  // are made only when there is a plan.
  void follow(QWidget& before) { before_ = &before; }
  void show_controls(const std::vector<ExploreControl>& controls);

 Q_SIGNALS:
  void chosen(const QString& key, int at);

 private:
  struct Row {
    QLabel* label = nullptr;
    QLabel* value = nullptr;     // the value of the slider
    QSlider* slider = nullptr;   // for a degree
    QComboBox* names = nullptr;  // for a choice, instead of the slider
  };
  void add_row(const ExploreControl& control);
  static QWidget* input_of(const Row& row);
  static void show_row(const Row& row, const ExploreControl& control);

  QGridLayout* grid_;
  QWidget* before_ = nullptr;
  std::vector<Row> rows_;
};

}  // namespace trainyard
