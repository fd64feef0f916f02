#include "gui/presenters/candidate_model.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "gui/presenters/plan_search.h"
#include "gui/presenters/text.h"
#include "model/schedule/schedule.h"
#include "scenarios/readable.h"

namespace trainyard {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

std::string seconds_text(double value) { return with_unit(Seconds(value)); }
std::string bytes_text(double value) { return with_unit(Bytes(value)); }
std::string share_text(double value) { return percent(value) + " %"; }
std::string dollars_text(double value) { return number(value); }
std::string energy_text(double value) { return value < kUnknown ? with_unit(Joules(value)) : "–"; }
std::string whole_text(double value) { return count(static_cast<std::int64_t>(value)); }

struct Column {
  const char* label;
  const char* meaning;
  double (*value)(const Candidate& candidate);
  std::string (*text)(double value);
  bool is_axis = false;
};

// The first ones are axes; less is better but for MFU, which is no axis for that reason.
const Column kColumns[] = {
    {QT_TRANSLATE_NOOP("trainyard::CandidateModel", "Step time"), "",
     [](const Candidate& c) { return c.estimate.step_time.value(); }, seconds_text, true},
    {QT_TRANSLATE_NOOP("trainyard::CandidateModel", "Memory"), "",
     [](const Candidate& c) { return c.estimate.peak_memory.value(); }, bytes_text, true},
    {QT_TRANSLATE_NOOP("trainyard::CandidateModel", "Cost, USD"), "",
     [](const Candidate& c) {
       return c.estimate.cost_per_step ? c.estimate.cost_per_step->value() : kUnknown;
     },
     dollars_text, true},
    {QT_TRANSLATE_NOOP("trainyard::CandidateModel", "Energy"), "",
     [](const Candidate& c) {
       return c.estimate.energy_per_step ? c.estimate.energy_per_step->value() : kUnknown;
     },
     energy_text, true},
    {QT_TRANSLATE_NOOP("trainyard::CandidateModel", "Bubble"), "",
     [](const Candidate& c) { return c.estimate.breakdown.bubble.value(); }, seconds_text, true},
    {QT_TRANSLATE_NOOP("trainyard::CandidateModel", "MFU"), "",
     [](const Candidate& c) { return c.estimate.mfu; }, share_text},
    {"TP", QT_TRANSLATE_NOOP("trainyard::CandidateModel", "tensor parallel"),
     [](const Candidate& c) { return double(c.plan.tensor_parallel); }, whole_text},
    {"CP", QT_TRANSLATE_NOOP("trainyard::CandidateModel", "context parallel"),
     [](const Candidate& c) { return double(c.plan.context_parallel); }, whole_text},
    {"PP", QT_TRANSLATE_NOOP("trainyard::CandidateModel", "pipeline stages"),
     [](const Candidate& c) { return double(c.plan.pipeline_parallel); }, whole_text},
    {"VP", QT_TRANSLATE_NOOP("trainyard::CandidateModel", "virtual stages"),
     [](const Candidate& c) { return double(c.plan.virtual_stages); }, whole_text},
    {"DP", QT_TRANSLATE_NOOP("trainyard::CandidateModel", "data parallel"),
     [](const Candidate& c) { return double(c.plan.data_parallel); }, whole_text},
    {"EP", QT_TRANSLATE_NOOP("trainyard::CandidateModel", "expert parallel"),
     [](const Candidate& c) { return double(c.plan.expert_parallel); }, whole_text},
    {"MB", QT_TRANSLATE_NOOP("trainyard::CandidateModel", "micro-batch"),
     [](const Candidate& c) { return double(c.plan.micro_batch); }, whole_text},
    {"ZeRO", QT_TRANSLATE_NOOP("trainyard::CandidateModel", "ZeRO stage"),
     [](const Candidate& c) { return double(c.plan.zero_stage); }, whole_text},
};
constexpr int kNumbers = static_cast<int>(std::size(kColumns));
enum NameColumn { recompute_column = kNumbers, schedule_column, all_columns };

QString recompute_text(const Recompute& recompute) {
  switch (recompute.mode) {
    case RecomputeMode::none:
      return QStringLiteral("none");
    case RecomputeMode::selective:
      return QStringLiteral("selective");
    case RecomputeMode::full:
      return recompute.full_layers > 0 ? QStringLiteral("full %1").arg(recompute.full_layers)
                                       : QStringLiteral("full");
    case RecomputeMode::automatic:
      break;
  }
  return QStringLiteral("auto");
}

}  // namespace

void CandidateModel::set_answer(std::shared_ptr<const SearchAnswer> answer) {
  beginResetModel();
  answer_ = std::move(answer);
  endResetModel();
}

const Candidate& CandidateModel::at(int row) const {
  return answer_->candidates()[static_cast<std::size_t>(row)];
}

int CandidateModel::axes() {
  return static_cast<int>(std::count_if(std::begin(kColumns), std::end(kColumns),
                                        [](const Column& column) { return column.is_axis; }));
}

QString CandidateModel::axis_name(int axis) { return tr(kColumns[axis].label); }

QString CandidateModel::axis_text(int axis, double value) { return qt(kColumns[axis].text(value)); }

double CandidateModel::axis_value(int row, int axis) const { return kColumns[axis].value(at(row)); }

std::vector<bool> CandidateModel::pareto(int axis_x, int axis_y) const {
  const int rows = rowCount();
  std::vector<int> order;
  for (int row = 0; row < rows; ++row) order.push_back(row);
  std::ranges::stable_sort(order, [&](int a, int b) {
    return std::pair(axis_value(a, axis_x), axis_value(a, axis_y)) <
           std::pair(axis_value(b, axis_x), axis_value(b, axis_y));
  });
  std::vector<bool> best(static_cast<std::size_t>(rows));
  double least = kUnknown;
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
  return parent.isValid() ? 0 : int(all_columns);
}

QVariant CandidateModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Candidate& candidate = at(index.row());
  const bool shows = role == Qt::DisplayRole || role == sort_role;
  if (index.column() == recompute_column) {
    return shows ? recompute_text(candidate.plan.recompute) : QVariant();
  }
  if (index.column() == schedule_column) {
    return shows ? qt(candidate.plan.schedule->name) : QVariant();
  }
  const Column& column = kColumns[index.column()];
  switch (role) {
    case Qt::DisplayRole:
      return qt(column.text(column.value(candidate)));
    case sort_role:
      return column.value(candidate);
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    default:
      return {};
  }
}

QVariant CandidateModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation == Qt::Vertical) {
    return role == Qt::DisplayRole ? QVariant(section + 1) : QVariant();
  }
  if (role == Qt::DisplayRole) {
    if (section == recompute_column) return tr("Recompute");
    if (section == schedule_column) return tr("Schedule");
    return tr(kColumns[section].label);
  }
  const bool explained = role == Qt::ToolTipRole && section < kNumbers;
  return explained ? tr(kColumns[section].meaning) : QVariant();
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
