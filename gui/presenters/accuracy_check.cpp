#include "gui/presenters/accuracy_check.h"

#include <QStringList>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "gui/presenters/text.h"
#include "scenarios/priced_run.h"
#include "scenarios/text/readable.h"
#include "scenarios/validation.h"
#include "scenarios/write/profile.h"

namespace trainyard {

struct CheckedRuns {
  ValidationReport report;
  std::vector<MeasuredOf> measured;  // one for each row of the report
  int asked = 0;                     // measured runs in the files
  int priced = 0;                    // fewer than `asked` if the check was cancelled
};

namespace {

struct ReadRuns {
  std::vector<PricedRun> runs;
  std::vector<MeasuredOf> measured;

  void add(PricedRun run, MeasuredOf of) {
    runs.push_back(std::move(run));
    measured.push_back(of);
  }
};

// Adds a row for the step of a profile and one for each operation. The predictions, from the
// simulation, are in the profile too.
void add_operations(const std::filesystem::path& file, const Profile& profile, ReadRuns& read) {
  const auto add = [&](const std::string& name, Seconds predicted, Seconds measured,
                       MeasuredOf of) {
    if (predicted <= Seconds(0) || measured <= Seconds(0)) return;  // a part only one of them has
    ValidationRow row{.file = file.filename().string(), .name = name, .job = name};
    row.source = profile.name;
    row.device = profile.backend;
    row.devices = static_cast<int>(profile.ranks.size());
    row.predicted = predicted;
    row.measured = measured;
    row.error = predicted / measured - 1;
    row.note = profile.failure;
    read.add({std::move(row), {}}, of);
  };
  add("step of " + profile.name, profile.predicted_step_time, mean_step_time(profile),
      MeasuredOf::step);
  for (const ProfiledOperation& one : profile.operations) {
    add("stage " + std::to_string(one.stage) + ": " + one.operation, one.predicted, one.measured,
        MeasuredOf::operation);
  }
}

// Reads all files. When it is told to stop, it prices no more runs but still counts them.
Expected<CheckedRuns> checked_runs(const std::vector<std::filesystem::path>& files,
                                   const std::atomic<bool>& stop) {
  ReadRuns read;
  CheckedRuns checked;
  for (const std::filesystem::path& file : files) {
    if (is_profile(file)) {
      const auto profile = read_profile(file);
      if (!profile) return tl::unexpected(profile.error());
      add_operations(file, *profile, read);
      continue;
    }
    auto scenarios = read_scenarios(file);
    if (!scenarios) return tl::unexpected(scenarios.error());
    for (const Scenario& scenario : *scenarios) {
      ++checked.asked;
      if (stop) continue;
      read.add(priced_run(file.filename().string(), scenario), MeasuredOf::run);
      ++checked.priced;
    }
  }
  checked.report = summarise(rows_of(std::move(read.runs)));
  checked.measured = std::move(read.measured);
  return checked;
}

QString share_or_dash(const std::optional<double>& value) {
  return value ? qt(percent(*value) + " %") : QStringLiteral("–");
}

QString signed_or_dash(const std::optional<double>& value) {
  return value ? qt(signed_percent(*value) + " %") : QStringLiteral("–");
}

ErrorSummary errors_of(const CheckedRuns& checked, MeasuredOf of) {
  std::vector<const ValidationRow*> rows;
  for (std::size_t i = 0; i < checked.measured.size(); ++i) {
    if (checked.measured[i] == of) rows.push_back(&checked.report.rows[i]);
  }
  return summary_of(rows);
}

QString text_of_runs(const ErrorSummary& runs) {
  const QString times =
      AccuracyCheck::tr(
          "%1 runs, %2 priced: mean error %3, median %4, bias %5; %6 inside the interval")
          .arg(runs.rows)
          .arg(runs.priced)
          .arg(share_or_dash(runs.mape), share_or_dash(runs.median), signed_or_dash(runs.bias),
               share_or_dash(runs.coverage));
  return runs.memory_mape ? times + AccuracyCheck::tr("; mean error of memory %1")
                                        .arg(share_or_dash(runs.memory_mape))
                          : times;
}

QString text_of_operations(const ErrorSummary& operations) {
  return AccuracyCheck::tr("%1 operations: mean error %2, median %3, bias %4")
      .arg(operations.rows)
      .arg(share_or_dash(operations.mape), share_or_dash(operations.median),
           signed_or_dash(operations.bias));
}

double worst(const ValidationRow& row) { return row.error ? std::abs(*row.error) : -1; }

struct AccuracyColumn {
  const char* label;
  QString (*text)(const ValidationRow& row);
  double (*number)(const ValidationRow& row);  // to sort by; nullptr: the column sorts as text
};

constexpr double kNone = -std::numeric_limits<double>::infinity();

template <typename Q>
QString shown_or_dash(const std::optional<Q>& value) {
  return value ? qt(with_unit(*value)) : QStringLiteral("–");
}
template <typename Q>
double plain(const std::optional<Q>& value) {
  return value ? value->value() : kNone;
}

const AccuracyColumn kAccuracyColumns[] = {
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Run"),
     [](const ValidationRow& row) { return qt(row.name); }, nullptr},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Error"),
     [](const ValidationRow& row) { return signed_or_dash(row.error); }, worst},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Measured"),
     [](const ValidationRow& row) { return shown_or_dash(row.measured); },
     [](const ValidationRow& row) { return plain(row.measured); }},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Predicted"),
     [](const ValidationRow& row) { return shown_or_dash(row.predicted); },
     [](const ValidationRow& row) { return plain(row.predicted); }},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Memory error"),
     [](const ValidationRow& row) { return signed_or_dash(row.memory_error); },
     [](const ValidationRow& row) {
       return row.memory_error ? std::abs(*row.memory_error) : kNone;
     }},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Devices"),
     [](const ValidationRow& row) { return qt(count(row.devices)); },
     [](const ValidationRow& row) { return double(row.devices); }},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Device"),
     [](const ValidationRow& row) { return qt(row.device); }, nullptr},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Stack"),
     [](const ValidationRow& row) { return qt(row.stack); }, nullptr},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Size"),
     [](const ValidationRow& row) { return qt(row.size); }, nullptr},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Parallelism"),
     [](const ValidationRow& row) { return qt(row.parallelism); }, nullptr},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Note"),
     [](const ValidationRow& row) { return qt(row.note); }, nullptr},
};

}  // namespace

AccuracyCheck::AccuracyCheck(QObject* parent)
    : QObject(parent), work_(*this, [this](const QString& why) { show(nullptr, why); }) {}
AccuracyCheck::~AccuracyCheck() = default;

void AccuracyCheck::start(std::vector<std::filesystem::path> files) {
  Q_EMIT started();
  work_.start([this, files = std::move(files)](const std::atomic<bool>& stop) {
    auto checked = checked_runs(files, stop);
    QString problem = checked ? QString() : qt(checked.error());
    auto kept = checked ? std::make_shared<const CheckedRuns>(*std::move(checked)) : nullptr;
    return Background::Done([this, kept = std::move(kept), problem] { show(kept, problem); });
  });
}

void AccuracyCheck::show(std::shared_ptr<const CheckedRuns> checked, const QString& problem) {
  problem_ = problem;
  if (checked) checked_ = std::move(checked);
  Q_EMIT finished();
}

std::shared_ptr<const ValidationReport> AccuracyCheck::report() const {
  return checked_ ? std::shared_ptr<const ValidationReport>(checked_, &checked_->report) : nullptr;
}

std::vector<MeasuredOf> AccuracyCheck::measured() const {
  return checked_ ? checked_->measured : std::vector<MeasuredOf>();
}

QString AccuracyCheck::summary() const {
  if (!problem_.isEmpty()) return problem_;
  if (!checked_)
    return tr("Open a file of measured runs or a profile to hold the predictions against it.");
  QStringList parts;
  if (checked_->priced < checked_->asked) {
    parts.append(tr("Cancelled after %1 of %2 runs").arg(checked_->priced).arg(checked_->asked));
  }
  for (std::size_t i = 0; i < checked_->measured.size(); ++i) {
    if (checked_->measured[i] != MeasuredOf::step) continue;
    const ValidationRow& step = checked_->report.rows[i];
    parts.append(tr("%1: measured %2, predicted %3 (%4)")
                     .arg(qt(step.name), qt(with_unit(*step.measured)),
                          qt(with_unit(*step.predicted)), signed_or_dash(step.error)));
  }
  const ErrorSummary operations = errors_of(*checked_, MeasuredOf::operation);
  if (operations.rows > 0) parts.append(text_of_operations(operations));
  const ErrorSummary runs = errors_of(*checked_, MeasuredOf::run);
  if (runs.rows > 0 || parts.isEmpty()) parts.append(text_of_runs(runs));
  return parts.join(QStringLiteral(". "));
}

void AccuracyModel::set_report(std::shared_ptr<const ValidationReport> report,
                               const std::vector<MeasuredOf>& measured) {
  beginResetModel();
  report_ = std::move(report);
  order_.resize(report_ ? report_->rows.size() : 0);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::stable_sort(order_, std::greater<>(), [&](std::size_t i) {
    return std::pair(measured[i] == MeasuredOf::step, worst(report_->rows[i]));
  });
  endResetModel();
}

const ValidationRow& AccuracyModel::at(int row) const {
  return report_->rows[order_[static_cast<std::size_t>(row)]];
}

int AccuracyModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(order_.size());
}

int AccuracyModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(std::size(kAccuracyColumns));
}

QVariant AccuracyModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const AccuracyColumn& column = kAccuracyColumns[index.column()];
  const ValidationRow& row = at(index.row());
  switch (role) {
    case Qt::DisplayRole:
      return column.text(row);
    case sort_role:
      return column.number != nullptr ? QVariant(column.number(row)) : QVariant(column.text(row));
    case Qt::ToolTipRole:
      return row.note.empty() ? qt(row.source) : qt(row.note);
    case Qt::TextAlignmentRole:
      return QVariant((column.number != nullptr ? Qt::AlignRight : Qt::AlignLeft) |
                      Qt::AlignVCenter);
    default:
      return {};
  }
}

QVariant AccuracyModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  return orientation == Qt::Horizontal ? QVariant(tr(kAccuracyColumns[section].label))
                                       : section + 1;
}

}  // namespace trainyard
