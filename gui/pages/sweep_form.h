// The form that describes a sweep: a table of the keys that vary, how their values combine, and how
// each point is answered.
#pragma once

#include <QWidget>

#include "gui/presenters/sweep/sweep_axes.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;
class QTableView;

namespace trainyard {

class SweepForm : public QWidget {
  Q_OBJECT
 public:
  explicit SweepForm(QWidget* parent = nullptr);

  SweepDraft draft() const;
  void set_draft(const SweepDraft& draft);
  // What of the scenario decides which keys can vary.
  enum class Varied { degrees_free, degrees_given, unlike_nodes };
  // Proposes axes, as long as the user has not chosen any.
  void suggest_axes(Varied varied);
  SweepAxes& axes() { return *axes_; }
  void show_verdict(const QString& verdict);

 Q_SIGNALS:
  void changed();

 private:
  QWidget* make_buttons();
  QWidget* make_settings();
  void add_key();
  void show_settings();

  SweepAxes* axes_;
  std::vector<DraftAxis> suggested_;
  QTableView* table_;
  QPushButton *add_, *remove_;
  QComboBox *combine_, *evaluate_;
  QLabel *drawn_, *seeded_, *verdict_;
  QSpinBox *samples_, *seed_;
  QLineEdit* where_;
};

}  // namespace trainyard
