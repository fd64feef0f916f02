#include "gui/pages/plan_page.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>
#include <cmath>

#include "gui/charts/scatter.h"
#include "gui/pages/search_line.h"
#include "gui/presenters/answer.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/plan/candidate_model.h"
#include "gui/presenters/plan/plan_search.h"
#include "gui/presenters/text.h"
#include "scenarios/question.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

constexpr int kMostPlans = 1000;
constexpr int kPlans = 200;
constexpr int kRowsForWidths = 50;  // rows that are measured to set the widths of columns

QString best_text(Objective objective, double value) {
  switch (objective) {
    case Objective::step_time:
      return qt(with_unit(Seconds(value)));
    case Objective::cost:
      return PlanPage::tr("%1 USD a step").arg(qt(number(value)));
    case Objective::energy:
      return qt(with_unit(Joules(value)));
    case Objective::memory:
      return qt(with_unit(Bytes(value)));
    case Objective::goodput:
      break;
  }
  return PlanPage::tr("%1 over goodput").arg(qt(with_unit(Seconds(value))));
}

// Says that the sizes of a document that asks for several are not compared by this one search.
QString sizes_text(const SearchAnswer& answer) {
  return PlanPage::tr(
             "The planner section asks for sizes or a deadline, which the command trainyard plan "
             "answers; this is one search, on the %1 devices of the cluster: ")
      .arg(qt(count(answer.question->job.job.cluster.devices())));
}

// The plans that come closest to fitting are priced after the search, so the search does not count
// them among the plans that it priced.
QString considered_text(const SearchResult& result) {
  const QString considered = PlanPage::tr("%1 combinations considered of %2, ")
                                 .arg(qt(count(result.considered)), qt(count(result.space_size)));
  const bool too_large = result.evaluated == 0 && result.optimal && result.pruned_by_memory > 0;
  return considered + (too_large
                           ? PlanPage::tr("every legal one left out by a bound on its memory")
                           : PlanPage::tr("%1 plans priced").arg(qt(count(result.evaluated))));
}

}  // namespace

PlanPage::PlanPage(ScenarioDocument& document, PlanSearch& search, QWidget* parent)
    : QWidget(parent),
      document_(document),
      search_(search),
      objective_(new QComboBox),
      axis_x_(new QComboBox),
      axis_y_(new QComboBox),
      top_(new QSpinBox),
      start_(new QPushButton(tr("Search"))),
      cancel_(new QPushButton(tr("Cancel"))),
      progress_(new QProgressBar),
      status_(new QLabel),
      why_(new QLabel),
      filter_text_(
          new SearchLine(tr("Filter: tp=8 zero=1 interleaved"), tr("Filter of the plans"))),
      matches_(new QLabel),
      model_(new CandidateModel(this)),
      filter_(new CandidateFilter(this)),
      table_(new QTableView),
      scatter_(new Scatter),
      actions_(make_actions()),
      splitter_(new QSplitter) {
  splitter_->setObjectName(QStringLiteral("plan"));
  splitter_->setChildrenCollapsible(false);
  splitter_->addWidget(make_table());
  splitter_->addWidget(make_picture());
  splitter_->setStretchFactor(0, 3);
  splitter_->setStretchFactor(1, 2);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(make_bar());
  layout->addWidget(status_);
  layout->addWidget(splitter_, 1);
  connect(&search_, &PlanSearch::started, this, &PlanPage::show_started);
  connect(&search_, &PlanSearch::progressed, this, &PlanPage::show_progress);
  connect(&search_, &PlanSearch::finished, this, &PlanPage::show_answer);
  connect(&document_, &ScenarioDocument::changed, this, [this] {
    show_status();
    show_selection();
  });
  show_selection();
}

QWidget* PlanPage::make_bar() {
  objective_->addItem(tr("Step time"), int(Objective::step_time));
  objective_->addItem(tr("Cost"), int(Objective::cost));
  objective_->addItem(tr("Energy"), int(Objective::energy));
  objective_->addItem(tr("Memory"), int(Objective::memory));
  objective_->addItem(tr("Step time over goodput"), int(Objective::goodput));
  objective_->setAccessibleName(tr("What is minimised"));
  top_->setRange(1, kMostPlans);
  top_->setValue(kPlans);
  top_->setAccessibleName(tr("Plans to keep"));
  start_->setObjectName(QStringLiteral("search"));
  cancel_->setObjectName(QStringLiteral("cancel"));
  cancel_->setEnabled(false);
  progress_->setRange(0, 1000);
  progress_->setTextVisible(false);
  status_->setObjectName(QStringLiteral("status"));
  status_->setWordWrap(true);
  status_->setText(tr("The planner looks for the best plans of this job."));
  connect(start_, &QPushButton::clicked, this, &PlanPage::start);
  connect(cancel_, &QPushButton::clicked, &search_, &PlanSearch::cancel);
  auto* bar = new QWidget;
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(new QLabel(tr("Minimise")));
  row->addWidget(objective_);
  row->addWidget(new QLabel(tr("Keep")));
  row->addWidget(top_);
  row->addWidget(start_);
  row->addWidget(cancel_);
  row->addWidget(progress_, 1);
  return bar;
}

QWidget* PlanPage::make_table() {
  filter_->setSourceModel(model_);
  table_->setModel(filter_);
  table_->setObjectName(QStringLiteral("plans"));
  table_->setAccessibleName(tr("Plans"));
  table_->setSortingEnabled(true);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setAlternatingRowColors(true);
  table_->setTabKeyNavigation(false);
  table_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  table_->horizontalHeader()->setResizeContentsPrecision(kRowsForWidths);
  table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 8);
  connect(filter_text_, &QLineEdit::textChanged, filter_, &CandidateFilter::set_filter);
  connect(filter_text_, &QLineEdit::textChanged, this, &PlanPage::show_matches);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          &PlanPage::show_selection);
  matches_->setObjectName(QStringLiteral("matches"));
  auto* line = new QHBoxLayout;
  line->addWidget(filter_text_, 1);
  line->addWidget(matches_);
  auto* left = new QWidget;
  auto* column = new QVBoxLayout(left);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(line);
  column->addWidget(table_, 1);
  column->addWidget(actions_);
  return left;
}

QWidget* PlanPage::make_picture() {
  for (QComboBox* axis : {axis_x_, axis_y_}) {
    for (int i = 0; i < CandidateModel::axes(); ++i) axis->addItem(CandidateModel::axis_name(i));
    connect(axis, &QComboBox::currentIndexChanged, this, &PlanPage::show_scatter);
  }
  axis_y_->setCurrentIndex(1);
  axis_x_->setAccessibleName(tr("Horizontal axis"));
  axis_y_->setAccessibleName(tr("Vertical axis"));
  scatter_->setAccessibleName(tr("Plans by two figures"));
  why_->setObjectName(QStringLiteral("why"));
  why_->setWordWrap(true);
  why_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  why_->setMinimumHeight(7 * why_->fontMetrics().lineSpacing());
  why_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  connect(scatter_, &Scatter::chosen, this, &PlanPage::select_row);
  auto* axes = new QHBoxLayout;
  axes->addWidget(axis_y_);
  axes->addWidget(new QLabel(tr("over")));
  axes->addWidget(axis_x_);
  axes->addStretch(1);
  auto* right = new QWidget;
  auto* column = new QVBoxLayout(right);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(axes);
  column->addWidget(scatter_, 1);
  column->addWidget(why_);
  return right;
}

QWidget* PlanPage::make_actions() {
  auto* bar = new QWidget;
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(0, 0, 0, 0);
  const auto add = [&](const QString& text, const char* name, void (PlanPage::*asked)()) {
    auto* button = new QPushButton(text);
    button->setObjectName(QLatin1String(name));
    connect(button, &QPushButton::clicked, this, asked);
    row->addWidget(button);
    return button;
  };
  of_this_scenario_.push_back(add(tr("Use in the scenario"), "use", &PlanPage::use_asked));
  add(tr("Explore"), "explore", &PlanPage::explore_asked);
  of_this_scenario_.push_back(add(tr("Simulate"), "simulate", &PlanPage::simulate_asked));
  of_this_scenario_.push_back(add(tr("Run …"), "run", &PlanPage::run_asked));
  of_this_scenario_.push_back(add(tr("Export …"), "export", &PlanPage::export_asked));
  row->addStretch(1);
  return bar;
}

const Candidate* PlanPage::selected() const {
  const QModelIndex now = filter_->mapToSource(table_->currentIndex());
  return now.isValid() ? &model_->at(now.row()) : nullptr;
}

void PlanPage::start() {
  if (document_.question() == nullptr) {
    const DocumentProblem& problem = document_.problem();
    status_->setText(problem.is_of_window
                         ? problem.message
                         : tr("The scenario must be complete first: %1").arg(problem.message));
    return;
  }
  const auto objective = static_cast<Objective>(objective_->currentData().toInt());
  const Device& device = document_.question()->job.job.cluster.device;
  if (objective == Objective::cost && !device.price) {
    status_->setText(tr("The device has no price; set the key price of the scenario."));
    return;
  }
  if (objective == Objective::energy && device.power <= Watts(0)) {
    status_->setText(tr("The device has no power; set the key power of the scenario."));
    return;
  }
  search_.start(document_.question(), objective, top_->value());
}

void PlanPage::show_started() {
  objective_->setEnabled(false);  // progress is shown in the unit of this objective
  cancel_->setEnabled(true);
  if (start_->hasFocus()) cancel_->setFocus();  // else it would move to the filter
  start_->setEnabled(false);
  progress_->setValue(0);
  status_->setText(tr("Searching …"));
}

void PlanPage::show_progress(const SearchProgress& progress) {
  progress_->setValue(static_cast<int>(std::lround(progress.fraction * 1000)));
  const auto objective = static_cast<Objective>(objective_->currentData().toInt());
  const QString best = std::isfinite(progress.best)
                           ? tr("best so far %1").arg(best_text(objective, progress.best))
                           : tr("none that fits so far");
  QString text = tr("%1 % of the space considered, %2 plans priced, %3")
                     .arg(qt(number(progress.fraction * 100, 3)), qt(count(progress.priced)), best);
  if (progress.gap < 1) text += tr("; at most %1 can be gained").arg(percent_text(progress.gap));
  status_->setText(text);
}

void PlanPage::show_answer() {
  objective_->setEnabled(true);
  start_->setEnabled(true);
  if (focusWidget() == cancel_) table_->setFocus();
  cancel_->setEnabled(false);
  progress_->setValue(progress_->maximum());
  show_status();
  if (!search_.problem().isEmpty()) return;
  model_->set_answer(search_.answer());
  show_matches();
  table_->resizeColumnsToContents();
  show_scatter();
  if (model_->rowCount() > 0) select_row(0);
  show_selection();
}

void PlanPage::show_status() {
  if (search_.busy()) return;  // the line shows progress then
  if (!search_.problem().isEmpty()) return status_->setText(search_.problem());
  if (!search_.answer()) return;
  const SearchAnswer& answer = *search_.answer();
  const SearchResult& result = answer.result;
  QString text = considered_text(result);
  if (result.plans.empty()) {
    text += result.closest.empty() ? tr(". None that fits was found.")
                                   : tr(". None fits; these miss the memory by the least.");
  } else if (result.optimal) {
    text += tr("; the first is the best of the space.");
  } else {
    text += tr("; at most %1 can still be gained.").arg(percent_text(result.gap));
  }
  if (answer.cancelled) text = tr("Cancelled. ") + text;
  if (asks_for_sizes(answer.question->scenario.space)) text = sizes_text(answer) + text;
  status_->setText(document_.age_of(answer.question) + text);
}

void PlanPage::show_scatter() {
  const int x = axis_x_->currentIndex();
  const int y = axis_y_->currentIndex();
  if (x < 0 || y < 0) return;
  const std::vector<bool> front = model_->pareto(x, y);
  std::vector<PlotPoint> points;
  for (int row = 0; row < model_->rowCount(); ++row) {
    points.push_back({model_->axis_value(row, x), model_->axis_value(row, y),
                      front[static_cast<std::size_t>(row)], plan_text(model_->at(row).plan)});
  }
  const auto axis = [](int at) {
    return PlotAxis{CandidateModel::axis_name(at),
                    [at](double value) { return CandidateModel::axis_text(at, value); }, false,
                    CandidateModel::axis_unit(at)};
  };
  scatter_->set_why_none(model_->answer() ? tr("The search kept no plan.")
                                          : tr("The plans are drawn here once they are searched."));
  scatter_->set_points(std::move(points), axis(x), axis(y));
  show_selection();
}

void PlanPage::show_selection() {
  const Candidate* candidate = selected();
  actions_->setEnabled(candidate != nullptr);
  if (candidate == nullptr) {
    scatter_->select(-1);
    why_->setText(tr("Why not this plan? Select one."));
    return;
  }
  const QModelIndex now = filter_->mapToSource(table_->currentIndex());
  scatter_->select(now.row());
  const SearchAnswer& answer = *model_->answer();
  // These actions would combine the plan with a scenario other than the one it was found for.
  for (QPushButton* button : of_this_scenario_) {
    button->setEnabled(document_.still_asks(answer.question));
  }
  const Cluster& cluster = answer.question->job.job.cluster;
  const QString head = plan_text(candidate->plan) + QLatin1Char('\n');
  const QString first = candidate->estimate.feasible ? tr("The best plan. %1")
                                                     : tr("It misses the memory by the least. %1");
  why_->setText(
      unbroken(head + (now.row() == 0 ? first.arg(limits_text(*candidate, cluster))
                                      : why_not_text(model_->at(0), *candidate, cluster))));
}

void PlanPage::show_matches() {
  const bool filters = model_->rowCount() > 0 && !filter_text_->text().trimmed().isEmpty();
  matches_->setVisible(filters);
  matches_->setText(
      tr("%1 of %2").arg(qt(count(filter_->rowCount())), qt(count(model_->rowCount()))));
}

// Selects a plan. If the filter hides it, the filter is cleared.
void PlanPage::select_row(int row) {
  QModelIndex index = filter_->mapFromSource(model_->index(row, 0));
  if (!index.isValid()) {
    filter_text_->clear();
    index = filter_->mapFromSource(model_->index(row, 0));
  }
  if (index.isValid()) {
    table_->setCurrentIndex(index);
    table_->scrollTo(index);
  }
}

}  // namespace trainyard
