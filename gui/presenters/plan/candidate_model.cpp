#include "gui/presenters/plan/candidate_model.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "gui/presenters/answer.h"
#include "gui/presenters/plan/plan_figures.h"
#include "gui/presenters/plan/plan_search.h"
#include "gui/presenters/text.h"
#include "model/schedule/schedule.h"
#include "scenarios/question.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

const int kFigureColumns = static_cast<int>(plan_figures().size());

const PlanFigure& figure_of(int column) { return plan_figures()[static_cast<std::size_t>(column)]; }

// Columns after the figures, in this order.
enum MoreColumns { goodput_column, recompute_column, schedule_column, more_columns };

int figure_axes() {
  return static_cast<int>(
      std::ranges::count(plan_figures(), PlanFigure::Kind::axis, &PlanFigure::kind));
}

// Choices in which the plans of an answer are mostly alike. One has a column only if plans differ.
struct PlanChoice {
  const char* head;
  QString (*text)(const Plan& plan);
};

constexpr PlanChoice kPlanChoices[] = {
    {QT_TRANSLATE_NOOP("trainyard::CandidateModel", "CP by"),
     [](const Plan& plan) {
       return plan.context_parallel > 1 ? qt(name_of(plan.context_parallel_algorithm))
                                        : QStringLiteral("–");
     }},
    {QT_TRANSLATE_NOOP("trainyard::CandidateModel", "Shards"),
     [](const Plan& plan) {
       return shards_in_groups(plan) ? QString::number(plan.sharding_group)
                                     : CandidateModel::tr("all");
     }},
    {QT_TRANSLATE_NOOP("trainyard::CandidateModel", "Offload"),
     [](const Plan& plan) { return offload_text(plan.offload); }},
    {QT_TRANSLATE_NOOP("trainyard::CandidateModel", "Rank order"),
     [](const Plan& plan) { return qt(plan.rank_order); }},
};

std::vector<int> choices_that_vary(const std::vector<Candidate>& candidates) {
  std::vector<int> vary;
  for (int i = 0; i < static_cast<int>(std::size(kPlanChoices)); ++i) {
    const auto differs = [&](const Candidate& candidate) {
      return kPlanChoices[i].text(candidate.plan) != kPlanChoices[i].text(candidates.front().plan);
    };
    if (std::ranges::any_of(candidates, differs)) vary.push_back(i);
  }
  return vary;
}

}  // namespace

void CandidateModel::set_answer(std::shared_ptr<const SearchAnswer> answer) {
  beginResetModel();
  answer_ = std::move(answer);
  over_goodput_.clear();
  choices_.clear();
  if (answer_) {
    const PreparedJob& job = answer_->question->job;
    for (const Candidate& candidate : answer_->candidates()) {
      over_goodput_.push_back(objective_value(job, answer_->options.valuation, Objective::goodput,
                                              candidate.plan, candidate.estimate));
    }
    choices_ = choices_that_vary(answer_->candidates());
  }
  endResetModel();
}

const Candidate& CandidateModel::at(int row) const {
  return answer_->candidates()[static_cast<std::size_t>(row)];
}

// One axis more than the figures have: step time over goodput, which an estimate does not hold.
int CandidateModel::axes() { return figure_axes() + 1; }

QString CandidateModel::axis_name(int axis) {
  return axis == figure_axes() ? tr("Step over goodput") : figure_of(axis).shown_head();
}

QString CandidateModel::axis_text(int axis, double value) {
  return qt(axis == figure_axes() ? with_unit(Seconds(value)) : figure_of(axis).text(value));
}

double CandidateModel::axis_unit(int axis) {
  return axis == figure_axes() ? 1 : figure_of(axis).unit;
}

double CandidateModel::axis_value(int row, int axis) const {
  return axis == figure_axes() ? over_goodput_[static_cast<std::size_t>(row)]
                               : figure_of(axis).value(at(row));
}

std::vector<bool> CandidateModel::pareto(int axis_x, int axis_y) const {
  const int rows = rowCount();
  std::vector<int> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) {
    return std::pair(axis_value(a, axis_x), axis_value(a, axis_y)) <
           std::pair(axis_value(b, axis_x), axis_value(b, axis_y));
  });
  std::vector<bool> best(static_cast<std::size_t>(rows));
  double least = std::numeric_limits<double>::infinity();
  for (const int row : order) {
    const double y = axis_value(row, axis_y);
    if (y >= least) continue;
    least = y;
    best[static_cast<std::size_t>(row)] = true;
  }
  return best;
}

int CandidateModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !answer_ ? 0 : static_cast<int>(answer_->candidates().size());
}

int CandidateModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0
                          : kFigureColumns + int(more_columns) + static_cast<int>(choices_.size());
}

QVariant CandidateModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (index.column() >= kFigureColumns)
    return more_data(index.row(), index.column() - kFigureColumns, role);
  const Candidate& candidate = at(index.row());
  const PlanFigure& figure = figure_of(index.column());
  switch (role) {
    case Qt::DisplayRole:
      return figure.shown(candidate);
    case sort_role:
      return figure.value(candidate);
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    default:
      return {};
  }
}

QVariant CandidateModel::more_data(int row, int column, int role) const {
  const bool shows = role == Qt::DisplayRole || role == sort_role;
  if (column != goodput_column) return shows ? choice_text(at(row).plan, column) : QVariant();
  const double value = axis_value(row, figure_axes());
  if (role == Qt::DisplayRole) return axis_text(figure_axes(), value);
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  return shows ? QVariant(value) : QVariant();
}

QString CandidateModel::choice_text(const Plan& plan, int column) const {
  if (column == recompute_column) return recompute_text(plan.recompute);
  if (column == schedule_column) {
    return plan.pipeline_parallel > 1 ? qt(plan.schedule->name) : QStringLiteral("–");
  }
  return kPlanChoices[choices_[static_cast<std::size_t>(column - more_columns)]].text(plan);
}

QVariant CandidateModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation == Qt::Vertical) {
    return role == Qt::DisplayRole ? QVariant(section + 1) : QVariant();
  }
  if (section >= kFigureColumns) {
    if (role != Qt::DisplayRole) return {};
    const int column = section - kFigureColumns;
    if (column == goodput_column) return axis_name(figure_axes());
    if (column == recompute_column) return tr("Recompute");
    if (column == schedule_column) return tr("Schedule");
    return tr(kPlanChoices[choices_[static_cast<std::size_t>(column - more_columns)]].head);
  }
  if (role == Qt::DisplayRole) return figure_of(section).shown_head();
  return role == Qt::ToolTipRole ? figure_of(section).shown_label() : QVariant();
}

CandidateFilter::CandidateFilter(QObject* parent) : QSortFilterProxyModel(parent) {
  setSortRole(CandidateModel::sort_role);
}

void CandidateFilter::set_filter(const QString& text) {
  words_ = text.toLower().split(QLatin1Char(' '), Qt::SkipEmptyParts);
  invalidateFilter();
}

bool CandidateFilter::filterAcceptsRow(int row, const QModelIndex& /*parent*/) const {
  QStringList cells;
  const QAbstractItemModel& table = *sourceModel();
  for (int column = 0; column < table.columnCount(); ++column) {
    const QString head = table.headerData(column, Qt::Horizontal).toString().toLower();
    const QString cell = table.index(row, column).data().toString().toLower();
    cells.append(head + QLatin1Char('=') + cell);
  }
  const auto has = [&](const QString& word) {
    if (word.contains(QLatin1Char('='))) return cells.contains(word);
    return std::ranges::any_of(cells, [&](const QString& cell) {
      return cell.section(QLatin1Char('='), 1).contains(word);
    });
  };
  return std::ranges::all_of(words_, has);
}

}  // namespace trainyard
