#include "gui/presenters/accuracy_check.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "gui/presenters/text.h"
#include "scenarios/priced_run.h"
#include "scenarios/readable.h"
#include "scenarios/validation.h"
#include "scenarios/write/profile.h"

namespace trainyard {
namespace {

// The step and every kind of operation of a run on real ranks, as the simulation predicted it.
std::vector<PricedRun> runs_of(const std::filesystem::path& file, const Profile& profile) {
  std::vector<PricedRun> runs;
  runs.reserve(profile.operations.size() + 1);
  const auto add = [&](const std::string& name, Seconds predicted, Seconds measured) {
    if (predicted <= Seconds(0) || measured <= Seconds(0)) return;  // a part only one of them has
    ValidationRow row{.file = file.filename().string(), .name = name, .job = name};
    row.source = profile.name;
    row.device = profile.backend;
    row.devices = static_cast<int>(profile.ranks.size());
    row.predicted = predicted;
    row.measured = measured;
    row.error = predicted / measured - 1;
    row.note = profile.failure;
    runs.push_back({std::move(row), {}});
  };
  add("step of " + profile.name, profile.predicted_step_time, mean_step_time(profile));
  for (const ProfiledOperation& of : profile.operations) {
    add("stage " + std::to_string(of.stage) + ": " + of.operation, of.predicted, of.measured);
  }
  return runs;
}

Expected<void> add_profile(const std::filesystem::path& file, std::vector<PricedRun>& runs) {
  auto profile = read_profile(file);
  if (!profile) return tl::unexpected(profile.error());
  std::ranges::move(runs_of(file, *profile), std::back_inserter(runs));
  return {};
}

// Reads and prices; nothing where it was stopped.
Expected<ValidationReport> report_of(const std::vector<std::filesystem::path>& files,
                                     const std::atomic<bool>& stop) {
  std::vector<PricedRun> runs;
  for (const std::filesystem::path& file : files) {
    if (is_profile(file)) {
      if (auto added = add_profile(file, runs); !added) return tl::unexpected(added.error());
      continue;
    }
    auto scenarios = read_scenarios(file);
    if (!scenarios) return tl::unexpected(scenarios.error());
    for (const Scenario& scenario : *scenarios) {
      if (stop) break;
      runs.push_back(priced_run(file.filename().string(), scenario));
    }
  }
  return summarise(rows_of(std::move(runs)));
}

double worst(const ValidationRow& row) { return row.error ? std::abs(*row.error) : -1; }

struct AccuracyColumn {
  const char* label;
  QString (*text)(const ValidationRow& row);
  double (*number)(const ValidationRow& row);  // nullptr: text
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
     [](const ValidationRow& row) {
       return row.error ? qt(signed_percent(*row.error) + " %") : QStringLiteral("–");
     },
     worst},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Measured"),
     [](const ValidationRow& row) { return shown_or_dash(row.measured); },
     [](const ValidationRow& row) { return plain(row.measured); }},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Predicted"),
     [](const ValidationRow& row) { return shown_or_dash(row.predicted); },
     [](const ValidationRow& row) { return plain(row.predicted); }},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyModel", "Memory error"),
     [](const ValidationRow& row) {
       return row.memory_error ? qt(signed_percent(*row.memory_error) + " %") : QStringLiteral("–");
     },
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
    auto report = report_of(files, stop);
    QString problem = report ? QString() : qt(report.error());
    auto kept = report ? std::make_shared<const ValidationReport>(*std::move(report)) : nullptr;
    return Background::Done([this, kept = std::move(kept), problem] { show(kept, problem); });
  });
}

void AccuracyCheck::show(std::shared_ptr<const ValidationReport> report, const QString& problem) {
  problem_ = problem;
  if (report) report_ = std::move(report);
  Q_EMIT finished();
}

QString AccuracyCheck::summary() const {
  if (!problem_.isEmpty()) return problem_;
  if (!report_)
    return tr("Open a file of measured runs or a profile to hold the predictions against it.");
  const ErrorSummary& all = report_->all;
  const auto share = [](const std::optional<double>& value) {
    return value ? qt(percent(*value) + " %") : QStringLiteral("–");
  };
  return tr("%1 runs, %2 priced: mean error %3, median %4, bias %5; %6 inside the interval; memory "
            "%7")
      .arg(all.rows)
      .arg(all.priced)
      .arg(share(all.mape), share(all.median),
           all.bias ? qt(signed_percent(*all.bias) + " %") : QStringLiteral("–"),
           share(all.coverage), share(all.memory_mape));
}

void AccuracyModel::set_report(std::shared_ptr<const ValidationReport> report) {
  beginResetModel();
  report_ = std::move(report);
  order_.resize(report_ ? report_->rows.size() : 0);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::stable_sort(order_, std::greater<>(),
                           [this](std::size_t i) { return worst(report_->rows[i]); });
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
