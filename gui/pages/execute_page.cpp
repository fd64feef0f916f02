#include "gui/pages/execute_page.h"

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/charts/colours.h"
#include "gui/pages/emphasis_delegate.h"
#include "gui/pages/save_dialog.h"
#include "gui/presenters/answer.h"
#include "gui/presenters/execution/execution.h"
#include "gui/presenters/execution/rank_model.h"
#include "gui/presenters/plan/explore.h"
#include "gui/presenters/text.h"
#include "scenarios/question.h"

namespace trainyard {
namespace {

constexpr int kMostRanks = 256;
constexpr int kMostSteps = 100000;
constexpr int kLogLines = 5000;
constexpr int kProgressParts = 1000;

QSpinBox* spin_box(const QString& name, int low, int high, int value) {
  auto* box = new QSpinBox;
  box->setRange(low, high);
  box->setValue(value);
  box->setAccessibleName(name);
  return box;
}

}  // namespace

ExecutePage::ExecutePage(Execution& execution, const Explore& explore, QWidget* parent)
    : QWidget(parent),
      execution_(execution),
      explore_(explore),
      backend_(new QComboBox),
      ranks_(spin_box(tr("Ranks"), 1, kMostRanks, 2)),
      steps_(spin_box(tr("Measured steps"), 1, kMostSteps, 3)),
      warmup_(spin_box(tr("Warm-up steps"), 0, kMostSteps, 1)),
      limit_(spin_box(tr("Time limit of a calibration"), 1, 3600, 60)),
      verify_(new QCheckBox(tr("Verify"))),
      run_(new QPushButton(tr("Run the plan"))),
      calibrate_(new QPushButton(tr("Calibrate this machine"))),
      cancel_(new QPushButton(tr("Cancel"))),
      timeline_(new QPushButton(tr("Show in Timeline"))),
      accuracy_(new QPushButton(tr("Show in Accuracy"))),
      save_(new QPushButton(tr("Save the result …"))),
      progress_(new QProgressBar),
      hint_(new QLabel),
      summary_(new QLabel),
      alert_(new QLabel),
      model_(new RankModel(this)),
      table_(new QTableView),
      log_(new QPlainTextEdit),
      splitter_(new QSplitter(Qt::Vertical)) {
  for (QLabel* label : {hint_, summary_, alert_}) label->setWordWrap(true);
  summary_->setObjectName(QStringLiteral("execution"));
  alert_->setObjectName(QStringLiteral("alert"));
  make_lists();
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(make_controls());
  layout->addWidget(hint_);
  layout->addWidget(make_bar());
  layout->addWidget(summary_);
  layout->addWidget(alert_);
  layout->addWidget(splitter_, 1);
  layout->addWidget(make_results());
  connect(&explore_, &Explore::changed, this, &ExecutePage::show_hint);
  connect(&execution_, &Execution::started, this, &ExecutePage::show_started);
  connect(&execution_, &Execution::logged, log_, &QPlainTextEdit::appendPlainText);
  connect(&execution_, &Execution::looked, this, &ExecutePage::show_look);
  connect(&execution_, &Execution::finished, this, &ExecutePage::show_finished);
  show_hint();
  show_finished();
}

QWidget* ExecutePage::make_controls() {
  backend_->addItem(tr("on the CPU"), QStringLiteral("cpu"));
  backend_->addItem(tr("on the GPUs"), QStringLiteral("cuda"));
  backend_->setAccessibleName(tr("What runs it"));
  ranks_->setObjectName(QStringLiteral("ranks"));
  steps_->setObjectName(QStringLiteral("steps"));
  limit_->setObjectName(QStringLiteral("limit"));
  limit_->setSuffix(tr(" s"));
  verify_->setToolTip(tr("Train the same network on one rank first and compare every number."));
  connect(ranks_, &QSpinBox::valueChanged, this, &ExecutePage::show_hint);
  auto* controls = new QWidget;
  auto* row = new QHBoxLayout(controls);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(backend_);
  const auto add = [row](const QString& text, QWidget* input) {
    auto* label = new QLabel(text);
    label->setBuddy(input);
    row->addSpacing(8);
    row->addWidget(label);
    row->addWidget(input);
  };
  if (!execution_.has_mpi()) ranks_->setMaximum(1);
  add(tr("Ranks"), ranks_);
  add(tr("Steps"), steps_);
  add(tr("Warm-up"), warmup_);
  row->addSpacing(8);
  row->addWidget(verify_);
  row->addStretch(1);
  add(tr("Calibration, at most"), limit_);
  return controls;
}

QWidget* ExecutePage::make_bar() {
  run_->setObjectName(QStringLiteral("run"));
  calibrate_->setObjectName(QStringLiteral("calibrate"));
  cancel_->setObjectName(QStringLiteral("cancel_run"));
  progress_->setTextVisible(false);
  progress_->setObjectName(QStringLiteral("progress"));
  progress_->setAccessibleName(tr("Progress of the run"));
  connect(run_, &QPushButton::clicked, this, &ExecutePage::run_asked);
  connect(calibrate_, &QPushButton::clicked, this, &ExecutePage::calibrate);
  connect(cancel_, &QPushButton::clicked, this, [this] {
    cancel_->setEnabled(false);
    summary_->setText(tr("Ending the ranks …"));
    execution_.cancel();
  });
  auto* bar = new QWidget;
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(0, 0, 0, 0);
  for (QPushButton* button : {run_, calibrate_, cancel_}) row->addWidget(button);
  row->addWidget(progress_, 1);
  return bar;
}

void ExecutePage::make_lists() {
  table_->setModel(model_);
  table_->setItemDelegate(new EmphasisDelegate(table_));
  table_->setObjectName(QStringLiteral("ranks_table"));
  table_->setAccessibleName(tr("Ranks of the run"));
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setAlternatingRowColors(true);
  table_->setTabKeyNavigation(false);
  table_->setWordWrap(false);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 8);
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->resizeColumnsToContents();
  log_->setObjectName(QStringLiteral("log"));
  log_->setAccessibleName(tr("Log"));
  log_->setReadOnly(true);
  log_->setTabChangesFocus(true);
  log_->setUndoRedoEnabled(false);
  log_->setLineWrapMode(QPlainTextEdit::NoWrap);
  log_->setMaximumBlockCount(kLogLines);
  log_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  log_->setPlaceholderText(tr("What the program says."));
  splitter_->setObjectName(QStringLiteral("execute"));
  splitter_->setChildrenCollapsible(false);
  splitter_->addWidget(table_);
  splitter_->addWidget(log_);
  splitter_->setStretchFactor(0, 2);
  splitter_->setStretchFactor(1, 3);
}

QWidget* ExecutePage::make_results() {
  timeline_->setObjectName(QStringLiteral("show_timeline"));
  accuracy_->setObjectName(QStringLiteral("show_accuracy"));
  connect(timeline_, &QPushButton::clicked, this, &ExecutePage::timeline_asked);
  connect(accuracy_, &QPushButton::clicked, this, &ExecutePage::accuracy_asked);
  connect(save_, &QPushButton::clicked, this, &ExecutePage::choose_destination);
  auto* results = new QWidget;
  auto* row = new QHBoxLayout(results);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(new QLabel(tr("Measured beside predicted:")));
  for (QPushButton* button : {timeline_, accuracy_, save_}) row->addWidget(button);
  row->addStretch(1);
  return results;
}

RunOrder ExecutePage::order() const {
  const auto& candidate = explore_.candidate();
  const bool smaller = candidate && ranks_->value() < candidate->plan.devices();
  return {.name = explore_.question() ? qt(explore_.question()->scenario.name) : QString(),
          .backend = backend_->currentData().toString(),
          .ranks = smaller ? ranks_->value() : 0,
          .steps = steps_->value(),
          .warmup = warmup_->value(),
          .verify = verify_->isChecked()};
}

void ExecutePage::calibrate() {
  execution_.calibrate({.backend = backend_->currentData().toString(),
                        .ranks = ranks_->value(),
                        .time_limit = double(limit_->value())});
}

void ExecutePage::choose_destination() {
  const bool is_run = !execution_.profile().empty();
  const std::filesystem::path from = is_run ? execution_.profile() : execution_.device();
  const std::filesystem::path to =
      ask_where_to_save(this, {.title = is_run ? tr("Save the profile") : tr("Save the device"),
                               .name = path_text(from.filename()),
                               .types = tr("Documents (*.json)")});
  if (to.empty()) return;
  const auto saved = execution_.save(to);
  Q_EMIT said(saved ? tr("Written to %1.").arg(path_text(to)) : qt(saved.error()));
}

void ExecutePage::show_hint() {
  QStringList lines;
  if (!execution_.lacking().isEmpty()) lines.append(execution_.lacking());
  if (explore_.candidate()) {
    lines.append(expected_run(*explore_.candidate(), ranks_->value()));
  } else if (!explore_.problem().isEmpty()) {
    lines.append(explore_.problem());
  }
  hint_->setText(lines.join(QLatin1Char('\n')));
}

void ExecutePage::say(const QString& problem) { summary_->setText(problem); }

void ExecutePage::show_started() {
  log_->clear();
  model_->set_watch({});
  alert_->clear();
  alert_->hide();
  summary_->setText(tr("Starting …"));
  progress_->setRange(0, 0);  // a busy indicator while the progress is not known
  for (QPushButton* button : {run_, calibrate_, timeline_, accuracy_, save_}) {
    button->setEnabled(false);
  }
  cancel_->setEnabled(true);
}

void ExecutePage::show_look() {
  const RankWatch& watch = execution_.watch();
  model_->set_watch(watch);
  widen_columns();
  const double progress = execution_.progress();
  if (progress >= 0) {
    progress_->setRange(0, kProgressParts);
    progress_->setValue(static_cast<int>(std::lround(progress * kProgressParts)));
    if (cancel_->isEnabled()) {
      summary_->setText(tr("Running … %1").arg(percent_text(progress)));
    }
  }
  QPalette colours = palette();
  colours.setColor(QPalette::WindowText, alarm_colour(palette()));
  alert_->setPalette(colours);
  if (alert_->text().isEmpty() && !watch.alert().isEmpty()) QApplication::alert(window());
  alert_->setText(watch.alert());
  alert_->setVisible(!watch.alert().isEmpty());
}

// Fits columns to their content, but never makes one narrower, so that nothing jumps during a run.
void ExecutePage::widen_columns() {
  const QAbstractItemView& cells = *table_;
  const QHeaderView& heads = *table_->horizontalHeader();
  for (int column = 0; column + 1 < model_->columnCount(); ++column) {
    const int needed = std::max(cells.sizeHintForColumn(column), heads.sectionSizeHint(column));
    if (table_->columnWidth(column) < needed) table_->setColumnWidth(column, needed);
  }
}

void ExecutePage::show_finished() {
  const bool can_start = execution_.can_start();
  run_->setEnabled(can_start);
  calibrate_->setEnabled(can_start);
  cancel_->setEnabled(false);
  timeline_->setEnabled(!execution_.trace().empty());
  accuracy_->setEnabled(!execution_.profile().empty());
  save_->setEnabled(!execution_.profile().empty() || !execution_.device().empty());
  progress_->setRange(0, kProgressParts);
  const double done = execution_.is_complete() ? 1 : std::max(0.0, execution_.progress());
  progress_->setValue(static_cast<int>(std::lround(done * kProgressParts)));
  alert_->hide();
  summary_->setText(execution_.summary().isEmpty()
                        ? tr("A run executes the plan on this machine, every operation timed; a "
                             "calibration measures the machine and writes it as a device.")
                        : execution_.summary());
}

}  // namespace trainyard
