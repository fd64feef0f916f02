#include "gui/pages/plan_controls.h"

#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QSlider>
#include <algorithm>

namespace trainyard {

PlanControls::PlanControls(QWidget* parent) : QWidget(parent), grid_(new QGridLayout(this)) {
  grid_->setContentsMargins(0, 0, 0, 0);
  grid_->setColumnStretch(1, 1);
  grid_->setVerticalSpacing(10);
}

void PlanControls::show_controls(const std::vector<ExploreControl>& controls) {
  // Without a plan the old values must not stay, since they would look like those of the document.
  setHidden(controls.empty());
  for (std::size_t i = 0; i < controls.size(); ++i) {
    if (i == rows_.size()) add_row(controls[i]);
    show_row(rows_[i], controls[i]);
  }
}

void PlanControls::add_row(const ExploreControl& control) {
  const int at = static_cast<int>(rows_.size());
  Row row{.label = new QLabel(control.label)};
  row.label->setToolTip(control.help);
  grid_->addWidget(row.label, at, 0);
  const auto choose = [this, key = control.key](int place) { Q_EMIT chosen(key, place); };
  QWidget* input = nullptr;
  if (control.is_degree) {
    row.slider = new QSlider(Qt::Horizontal);
    row.slider->setPageStep(1);
    row.slider->setTickPosition(QSlider::TicksBelow);
    row.value = new QLabel;
    row.value->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    row.value->setMinimumWidth(row.value->fontMetrics().horizontalAdvance(QStringLiteral("00000")));
    grid_->addWidget(row.slider, at, 1);
    grid_->addWidget(row.value, at, 2);
    connect(row.slider, &QSlider::valueChanged, this, choose);
    input = row.slider;
  } else {
    row.names = new QComboBox;
    grid_->addWidget(row.names, at, 1, 1, 2);
    connect(row.names, &QComboBox::currentIndexChanged, this, choose);
    input = row.names;
  }
  input->setObjectName(control.key);
  input->setAccessibleName(control.label);
  input->setToolTip(control.help);
  row.label->setBuddy(input);
  setTabOrder(rows_.empty() ? before_ : input_of(rows_.back()), input);
  rows_.push_back(row);
}

QWidget* PlanControls::input_of(const Row& row) {
  return row.slider != nullptr ? static_cast<QWidget*>(row.slider) : row.names;
}

void PlanControls::show_row(const Row& row, const ExploreControl& control) {
  const bool free = control.values.size() > 1;
  if (row.slider != nullptr) {
    const QSignalBlocker quiet(row.slider);
    row.slider->setRange(0, std::max(0, static_cast<int>(control.values.size()) - 1));
    row.slider->setTickInterval(1);
    row.slider->setValue(control.at);
    row.slider->setEnabled(free);
    row.value->setText(control.names.value(control.at));
    return;
  }
  const QSignalBlocker quiet(row.names);
  QStringList now;
  for (int i = 0; i < row.names->count(); ++i) now.append(row.names->itemText(i));
  if (now != control.names) {
    row.names->clear();
    row.names->addItems(control.names);
  }
  row.names->setCurrentIndex(control.at);
  row.names->setEnabled(free);
}

}  // namespace trainyard
