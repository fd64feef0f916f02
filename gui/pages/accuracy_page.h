// Compares predicted with measured times: in a scatter, as errors over a property of the runs that
// the user chooses, and as a table with the largest errors first.
#pragma once

#include <QWidget>

class QComboBox;
class QLabel;
class QPushButton;
class QSortFilterProxyModel;
class QSplitter;
class QTableView;

namespace trainyard {

class AccuracyCheck;
class AccuracyModel;
class Scatter;

class AccuracyPage : public QWidget {
  Q_OBJECT
 public:
  AccuracyPage(AccuracyCheck& check, QWidget* parent = nullptr);

 private:
  QWidget* make_bar();
  void choose_files();
  void show_report();
  void show_picture();
  void show_selection();
  void select_row(int row);

  AccuracyCheck& check_;
  QPushButton *open_, *cancel_;
  QComboBox* picture_;
  QLabel* summary_;
  AccuracyModel* model_;
  QSortFilterProxyModel* sorted_;
  QTableView* table_;
  Scatter* scatter_;
  QSplitter* splitter_;
};

}  // namespace trainyard
