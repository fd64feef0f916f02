#include "gui/pages/accuracy_page.h"

#include <QComboBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <limits>

#include "gui/charts/scatter.h"
#include "gui/presenters/accuracy_check.h"
#include "gui/presenters/text.h"
#include "scenarios/text/readable.h"
#include "scenarios/validation.h"

namespace trainyard {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

double seconds_or_none(const std::optional<Seconds>& time) {
  return time ? time->value() : kNothing;
}

QString seconds_text(double value) { return qt(with_unit(Seconds(value))); }
QString error_text(double value) { return qt(signed_percent(value) + " %"); }

// The axis over which residuals are drawn: a number, such as devices, or a list of names.
struct Residuals {
  const char* label;
  const char* axis;
  double (*number)(const ValidationRow& row);
  const std::string& (*name)(const ValidationRow& row);  // instead of a number
};

constexpr Residuals kResiduals[] = {
    {QT_TRANSLATE_NOOP("trainyard::AccuracyPage", "Error over measured time"),
     QT_TRANSLATE_NOOP("trainyard::AccuracyPage", "measured"),
     [](const ValidationRow& row) { return seconds_or_none(row.measured); }, nullptr},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyPage", "Error over devices"),
     QT_TRANSLATE_NOOP("trainyard::AccuracyPage", "devices"),
     [](const ValidationRow& row) { return double(row.devices); }, nullptr},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyPage", "Error by device"),
     QT_TRANSLATE_NOOP("trainyard::AccuracyPage", "device"), nullptr,
     [](const ValidationRow& row) -> const std::string& { return row.device; }},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyPage", "Error by stack"),
     QT_TRANSLATE_NOOP("trainyard::AccuracyPage", "stack"), nullptr,
     [](const ValidationRow& row) -> const std::string& { return row.stack; }},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyPage", "Error by size"),
     QT_TRANSLATE_NOOP("trainyard::AccuracyPage", "parameters"), nullptr,
     [](const ValidationRow& row) -> const std::string& { return row.size; }},
    {QT_TRANSLATE_NOOP("trainyard::AccuracyPage", "Error by parallelism"),
     QT_TRANSLATE_NOOP("trainyard::AccuracyPage", "parallelism"), nullptr,
     [](const ValidationRow& row) -> const std::string& { return row.parallelism; }},
};

// Every name that occurs in the rows, once; sizes go from the smallest to the largest.
std::vector<std::string> names_of(const Residuals& residuals, const ValidationReport& report) {
  std::vector<std::string> names;
  for (const ValidationRow& row : report.rows) names.push_back(residuals.name(row));
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::ranges::stable_sort(names, {}, [&](const std::string& name) {
    return std::ranges::find(report.by_size, name, &SliceSummary::name) - report.by_size.begin();
  });
  return names;
}

}  // namespace

AccuracyPage::AccuracyPage(AccuracyCheck& check, QWidget* parent)
    : QWidget(parent),
      check_(check),
      open_(new QPushButton(tr("Open measured runs …"))),
      cancel_(new QPushButton(tr("Cancel"))),
      picture_(new QComboBox),
      summary_(new QLabel),
      model_(new AccuracyModel(this)),
      sorted_(new QSortFilterProxyModel(this)),
      table_(new QTableView),
      scatter_(new Scatter),
      splitter_(new QSplitter) {
  sorted_->setSourceModel(model_);
  sorted_->setSortRole(AccuracyModel::sort_role);
  table_->setModel(sorted_);
  table_->setObjectName(QStringLiteral("runs"));
  table_->setAccessibleName(tr("Measured runs"));
  table_->setSortingEnabled(true);
  table_->horizontalHeader()->setSortIndicator(-1, Qt::DescendingOrder);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setAlternatingRowColors(true);
  table_->setTabKeyNavigation(false);
  table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 8);
  scatter_->setAccessibleName(tr("Predicted against measured"));
  summary_->setObjectName(QStringLiteral("accuracy"));
  summary_->setWordWrap(true);
  splitter_->setObjectName(QStringLiteral("accuracy"));
  splitter_->setChildrenCollapsible(false);
  splitter_->addWidget(table_);
  splitter_->addWidget(scatter_);
  splitter_->setSizes({1100, 1000});  // only their ratio counts
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(make_bar());
  layout->addWidget(summary_);
  layout->addWidget(splitter_, 1);
  connect(&check_, &AccuracyCheck::started, this, [this] {
    cancel_->setEnabled(true);
    summary_->setText(tr("Pricing the runs …"));
  });
  connect(&check_, &AccuracyCheck::finished, this, &AccuracyPage::show_report);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          &AccuracyPage::show_selection);
  connect(scatter_, &Scatter::chosen, this, &AccuracyPage::select_row);
  show_report();
}

QWidget* AccuracyPage::make_bar() {
  picture_->addItem(tr("Predicted against measured"));
  for (const Residuals& residuals : kResiduals) picture_->addItem(tr(residuals.label));
  picture_->setAccessibleName(tr("What the picture shows"));
  connect(open_, &QPushButton::clicked, this, &AccuracyPage::choose_files);
  connect(cancel_, &QPushButton::clicked, this, [this] { check_.cancel(); });
  connect(picture_, &QComboBox::currentIndexChanged, this, &AccuracyPage::show_picture);
  auto* bar = new QWidget;
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(open_);
  row->addWidget(cancel_);
  row->addStretch(1);
  row->addWidget(picture_);
  return bar;
}

void AccuracyPage::choose_files() {
  const QStringList chosen = QFileDialog::getOpenFileNames(
      this, tr("Open measured runs"), QString(), tr("Measured runs and profiles (*.json)"));
  std::vector<std::filesystem::path> files;
  for (const QString& file : chosen) files.push_back(path_of(file));
  if (!files.empty()) check_.start(std::move(files));
}

void AccuracyPage::show_report() {
  cancel_->setEnabled(false);
  summary_->setText(check_.summary());
  model_->set_report(check_.report(), check_.measured());
  table_->resizeColumnsToContents();
  show_picture();
}

void AccuracyPage::show_picture() {
  const int chosen = picture_->currentIndex();
  std::vector<PlotPoint> points;
  scatter_->set_why_none(check_.report() ? tr("The files have no measured run.")
                                         : tr("The runs are drawn here once they are opened."));
  if (chosen <= 0) {
    for (int row = 0; row < model_->rowCount(); ++row) {
      const ValidationRow& run = model_->at(row);
      points.push_back(
          {seconds_or_none(run.measured), seconds_or_none(run.predicted), false, qt(run.name)});
    }
    scatter_->set_line(ScatterLine::diagonal);
    scatter_->set_points(std::move(points), {tr("measured"), seconds_text, true},
                         {tr("predicted"), seconds_text, true});
    return;
  }
  const Residuals& residuals = kResiduals[chosen - 1];
  const bool has_names = residuals.name != nullptr && check_.report() != nullptr;
  const std::vector<std::string> names =
      has_names ? names_of(residuals, *check_.report()) : std::vector<std::string>();
  for (int row = 0; row < model_->rowCount(); ++row) {
    const ValidationRow& run = model_->at(row);
    const double x = residuals.name == nullptr
                         ? residuals.number(run)
                         : double(std::ranges::find(names, residuals.name(run)) - names.begin());
    points.push_back({x, run.error.value_or(kNothing), false, qt(run.name)});
  }
  const auto name_at = [names](double x) {
    const auto at = static_cast<std::size_t>(std::max(0.0, std::round(x)));
    return at < names.size() && std::abs(x - std::round(x)) < 0.2 ? qt(names[at]) : QString();
  };
  const bool is_time = chosen == 1;
  PlotAxis x{tr(residuals.axis), {}, residuals.name == nullptr};
  if (residuals.name != nullptr) {
    x.text = name_at;
  } else if (is_time) {
    x.text = seconds_text;
  } else {
    x.text = [](double value) { return qt(count(std::llround(value))); };
  }
  scatter_->set_line(ScatterLine::none);
  scatter_->set_points(std::move(points), std::move(x), {tr("error"), error_text, false});
}

void AccuracyPage::show_selection() {
  const QModelIndex now = sorted_->mapToSource(table_->currentIndex());
  scatter_->select(now.isValid() ? now.row() : -1);
}

void AccuracyPage::select_row(int row) {
  table_->setCurrentIndex(sorted_->mapFromSource(model_->index(row, 0)));
}

}  // namespace trainyard
