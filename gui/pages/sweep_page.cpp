#include "gui/pages/sweep_page.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>
#include <cmath>
#include <utility>

#include "gui/charts/heat_map.h"
#include "gui/charts/line_chart.h"
#include "gui/pages/save_dialog.h"
#include "gui/pages/sweep_form.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/sweep/sweep_figures.h"
#include "gui/presenters/sweep/sweep_run.h"
#include "gui/presenters/sweep/sweep_table.h"
#include "gui/presenters/text.h"
#include "scenarios/question.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

constexpr int kMeasuredRows = 50;  // rows that are measured to set the widths of columns

QString result_files() { return SweepPage::tr("Results of a sweep (*.sqlite)"); }

// Fills a box with names. The present choice stays if it is among them.
void fill_box(QComboBox& box, const QStringList& names, int otherwise) {
  const QSignalBlocker quiet(&box);
  const int before =
      box.currentIndex() < 0 ? -1 : static_cast<int>(names.indexOf(box.currentText()));
  box.clear();
  box.addItems(names);
  box.setCurrentIndex(before >= 0 ? before
                                  : std::min(otherwise, static_cast<int>(names.size()) - 1));
}

}  // namespace

SweepPage::SweepPage(ScenarioDocument& document, SweepRun& run, QWidget* parent)
    : QWidget(parent),
      document_(document),
      run_(run),
      form_(new SweepForm),
      start_(new QPushButton(tr("Run …"))),
      cancel_(new QPushButton(tr("Cancel"))),
      save_(new QPushButton(tr("Save as a document …"))),
      open_(new QPushButton(tr("Open results …"))),
      progress_(new QProgressBar),
      status_(new QLabel),
      picture_(new QComboBox),
      figure_(new QComboBox),
      value_(new QComboBox),
      x_(new QComboBox),
      y_(new QComboBox),
      fitting_(new QCheckBox(tr("of what fits"))),
      heat_(new HeatMap),
      lines_(new LineChart),
      partial_(new QLabel),
      pictures_(new QStackedWidget),
      model_(new SweepTable(this)),
      table_(new QTableView),
      results_(new QSplitter),
      splitter_(new QSplitter(Qt::Vertical)) {
  make_table();
  results_->setObjectName(QStringLiteral("sweep_results"));
  results_->setChildrenCollapsible(false);
  results_->addWidget(make_picture());
  results_->addWidget(table_);
  results_->setSizes({1200, 1000});  // only their ratio counts
  splitter_->setObjectName(QStringLiteral("sweep"));
  splitter_->setChildrenCollapsible(false);
  splitter_->addWidget(make_builder());
  splitter_->addWidget(results_);
  splitter_->setStretchFactor(0, 0);
  splitter_->setStretchFactor(1, 1);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(splitter_);
  const auto check = [this] { run_.check(question()); };
  connect(form_, &SweepForm::changed, this, check);
  connect(&document_, &ScenarioDocument::replaced, this, [this] {
    using Varied = SweepForm::Varied;
    const auto question = document_.question();
    const bool is_given =
        question && question->scenario.plan && question->scenario.plan->data_parallel.has_value();
    const bool is_unlike = document_.problem().is_of_window;
    form_->suggest_axes(is_unlike  ? Varied::unlike_nodes
                        : is_given ? Varied::degrees_given
                                   : Varied::degrees_free);
  });
  connect(&document_, &ScenarioDocument::changed, this, check);
  connect(&run_, &SweepRun::checked, this, [this] { form_->show_verdict(run_.verdict()); });
  connect(&run_, &SweepRun::started, this, [this] { show_running(true); });
  connect(&run_, &SweepRun::finished, this, [this] { show_running(false); });
  connect(&run_, &SweepRun::progressed, this, [this](double share) {
    progress_->setValue(static_cast<int>(std::lround(share * progress_->maximum())));
  });
  connect(&run_, &SweepRun::points_changed, this, &SweepPage::show_points);
  connect(&run_, &SweepRun::said, this, &SweepPage::show_status);
  connect(&document_, &ScenarioDocument::changed, this, &SweepPage::show_status);
  show_status();
  show_running(false);
  check();
}

void SweepPage::make_table() {
  table_->setModel(model_);
  table_->setObjectName(QStringLiteral("points"));
  table_->setAccessibleName(tr("Points of the sweep"));
  table_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  table_->horizontalHeader()->setSortIndicatorClearable(true);
  table_->setSortingEnabled(true);
  table_->horizontalHeader()->setResizeContentsPrecision(kMeasuredRows);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setAlternatingRowColors(true);
  table_->setTabKeyNavigation(false);
  table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 8);
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          &SweepPage::show_selection);
}

QWidget* SweepPage::make_builder() {
  status_->setObjectName(QStringLiteral("sweep_status"));
  status_->setWordWrap(true);
  auto* builder = new QWidget;
  auto* layout = new QVBoxLayout(builder);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(form_, 1);
  layout->addWidget(make_bar());
  layout->addWidget(status_);
  return builder;
}

QWidget* SweepPage::make_bar() {
  start_->setObjectName(QStringLiteral("sweep_run"));
  cancel_->setObjectName(QStringLiteral("sweep_cancel"));
  save_->setObjectName(QStringLiteral("sweep_save"));
  open_->setObjectName(QStringLiteral("sweep_open"));
  progress_->setRange(0, 1000);
  progress_->setTextVisible(false);
  connect(start_, &QPushButton::clicked, this, &SweepPage::choose_results);
  connect(cancel_, &QPushButton::clicked, this, [this] { run_.cancel(); });
  connect(save_, &QPushButton::clicked, this, &SweepPage::choose_document);
  connect(open_, &QPushButton::clicked, this, &SweepPage::open_results);
  auto* bar = new QWidget;
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(start_);
  row->addWidget(cancel_);
  row->addWidget(progress_, 1);
  row->addWidget(save_);
  row->addWidget(open_);
  return bar;
}

QWidget* SweepPage::make_picture() {
  heat_->setAccessibleName(tr("A figure over two keys"));
  lines_->setAccessibleName(tr("A figure along a key"));
  pictures_->addWidget(heat_);
  pictures_->addWidget(lines_);
  connect(heat_, &CellChart::chosen, this, &SweepPage::select_point);
  connect(lines_, &CellChart::chosen, this, &SweepPage::select_point);
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  partial_->setObjectName(QStringLiteral("sweep_partial"));
  partial_->setWordWrap(true);
  partial_->hide();
  layout->addWidget(make_choices());
  layout->addWidget(partial_);
  layout->addWidget(pictures_, 1);
  return panel;
}

QWidget* SweepPage::make_choices() {
  picture_->addItems({tr("Heat map"), tr("Lines")});
  value_->addItems({tr("least"), tr("mean"), tr("most")});
  fitting_->setChecked(true);
  const std::pair<QComboBox*, std::pair<QString, const char*>> boxes[] = {
      {picture_, {tr("Kind of picture"), "picture"}},
      {value_, {tr("Which of several points"), "value"}},
      {figure_, {tr("Figure"), "figure"}},
      {x_, {tr("Key of the horizontal axis"), "key_x"}},
      {y_, {tr("Key of the vertical axis, or of the lines"), "key_y"}}};
  for (const auto& [box, names] : boxes) {
    box->setAccessibleName(names.first);
    box->setToolTip(names.first);
    box->setObjectName(QLatin1String(names.second));
    connect(box, &QComboBox::currentIndexChanged, this, &SweepPage::show_picture);
  }
  connect(fitting_, &QCheckBox::toggled, this, &SweepPage::show_picture);
  auto* what = new QHBoxLayout;
  what->addWidget(picture_);
  what->addWidget(value_);
  what->addWidget(figure_, 1);
  what->addWidget(fitting_);
  auto* over = new QHBoxLayout;
  over->addWidget(new QLabel(tr("over")));
  over->addWidget(x_, 1);
  over->addWidget(new QLabel(tr("and")));
  over->addWidget(y_, 1);
  for (QComboBox* box : {figure_, x_, y_}) {
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(12);
  }
  auto* choices = new QWidget;
  auto* layout = new QVBoxLayout(choices);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(what);
  layout->addLayout(over);
  return choices;
}

SweepQuestion SweepPage::question() const {
  const bool is_new = document_.file().empty();
  return {.scenario = document_.text(),
          .file = is_new ? std::filesystem::path("scenario.json") : document_.file(),
          .draft = form_->draft()};
}

void SweepPage::show_draft(const SweepDraft& draft) { form_->set_draft(draft); }

void SweepPage::choose_results() {
  const std::filesystem::path file =
      ask_where_to_save(this, {.title = tr("Results; a file of the same sweep goes on"),
                               .name = QStringLiteral("results.sqlite"),
                               .types = result_files(),
                               .goes_on = true});
  if (file.empty()) return;
  started_of_ = document_.number();
  run_.start(question(), file);
}

void SweepPage::choose_document() {
  const std::filesystem::path file =
      ask_where_to_save(this, {.title = tr("Save the sweep as a document"),
                               .name = QStringLiteral("sweep.json"),
                               .types = tr("Documents (*.json)")});
  if (!file.empty()) run_.save(question(), file);
}

void SweepPage::open_results() {
  const QString file =
      QFileDialog::getOpenFileName(this, tr("Open results"), QString(), result_files());
  if (!file.isEmpty()) run_.open(path_of(file));
}

void SweepPage::show_running(bool runs) {
  start_->setEnabled(!runs);
  open_->setEnabled(!runs);
  cancel_->setEnabled(runs);
  if (runs) progress_->setValue(0);
}

// Points of an opened result file belong to no open scenario, so they cannot be out of date.
QString SweepPage::age_of_points() const {
  return run_.scenario().empty() ? QString() : document_.age_of(run_.scenario(), points_of_);
}

// Points stay where something else is said, as that another file cannot be opened.
void SweepPage::show_status() {
  if (run_.busy() || !run_.points()) return status_->setText(run_.status());
  if (run_.tells_of_points()) return status_->setText(age_of_points() + run_.status());
  status_->setText(
      tr("%1\nBelow: %2").arg(run_.status(), age_of_points() + run_.points()->summary()));
}

void SweepPage::show_points() {
  const auto& points = run_.points();
  points_of_ = started_of_;
  const bool is_first = model_->columnCount() == 0;
  const int at = table_->verticalScrollBar()->value();
  model_->set_points(points);
  table_->verticalScrollBar()->setValue(at);
  if (is_first || !run_.busy()) table_->resizeColumnsToContents();
  QStringList keys;
  for (const PointsKey& key : points->keys) keys.append(key.name);
  QStringList figures;
  for (const std::size_t figure : points->figures) figures.append(sweep_figure_name(figure));
  partial_->setText(tr("Drawn from the first %1 points; %2 more of the file are not read. "
                       "`trainyard report` reads all.")
                        .arg(qt(count(std::ssize(points->points))), qt(count(points->unread()))));
  fill_box(*x_, keys, 0);
  fill_box(*y_, keys + QStringList{tr("nothing else")}, 1);
  fill_box(
      *figure_, figures,
      std::max(0, static_cast<int>(figures.indexOf(sweep_figure_name(figure_at("step_time_s"))))));
  show_picture();
}

CellChoice SweepPage::choice() const {
  const auto& points = run_.points();
  const int y = y_->currentIndex();
  const bool has_y = y != x_->currentIndex() && y < static_cast<int>(points->keys.size());
  return {.x = x_->currentIndex(),
          .y = has_y ? y : -1,
          .figure = points->figures[static_cast<std::size_t>(figure_->currentIndex())],
          .value = static_cast<CellValue>(value_->currentIndex()),
          .only_fitting = fitting_->isChecked()};
}

void SweepPage::show_picture() {
  pictures_->setCurrentIndex(picture_->currentIndex());
  partial_->setVisible(run_.points() && run_.points()->unread() > 0);
  if (!run_.points() || x_->currentIndex() < 0 || figure_->currentIndex() < 0) {
    const bool is_refused = run_.points() && !run_.points()->points.empty();
    const ChartCells none{
        .why_none =
            is_refused ? tr("No point has a figure: %1.").arg(qt(run_.points()->points[0].row.note))
                       : QString()};
    heat_->set_cells(none);
    lines_->set_cells(none);
    return;
  }
  const CellChoice chosen = choice();
  const SweepPoints& points = *run_.points();
  SweepCells cells = cells_of(points, chosen);
  const auto text = [figure = chosen.figure](double value) {
    return sweep_figure_text(figure, value);
  };
  ChartCells drawn{.x_name = x_->currentText(),
                   .y_name = chosen.y < 0 ? QString() : y_->currentText(),
                   .x = std::move(cells.x),
                   .y = std::move(cells.y),
                   .values = std::move(cells.values),
                   .points = std::move(cells.points),
                   .value = {figure_->currentText(), text, false, sweep_figure_unit(chosen.figure)},
                   .some_unread = points.unread() > 0};
  if (!drawn.range() && points.answered > 0) {
    drawn.why_none =
        chosen.only_fitting
            ? tr("No point fits. Untick “%1” to see those that do not fit.").arg(fitting_->text())
            : tr("No point has this figure.");
  }
  heat_->set_cells(drawn);
  lines_->set_cells(drawn);
}

// Selects the cell of the table's point in the picture; other points may share this cell.
void SweepPage::show_selection() {
  const QModelIndex now = table_->currentIndex();
  if (!now.isValid() || heat_->cells().x.isEmpty()) return;
  const CellChoice chosen = choice();
  const SweepPoints& points = *run_.points();
  const SweptPoint& point = points.points[static_cast<std::size_t>(model_->point_at(now.row()))];
  const auto group = [&](int key) {
    const auto at = static_cast<std::size_t>(key);
    return key < 0 ? 0 : points.keys[at].group_of(point.places[at]);
  };
  const CellPlace place{group(chosen.x), group(chosen.y)};
  heat_->select(place);
  lines_->select(place);
}

void SweepPage::select_point(int column, int row) {
  const auto& points = heat_->cells().points[static_cast<std::size_t>(row)];
  const int point = points[static_cast<std::size_t>(column)];
  if (point >= 0) table_->setCurrentIndex(model_->index(model_->row_of(point), 0));
  heat_->select(CellPlace{column, row});
  lines_->select(CellPlace{column, row});
}

}  // namespace trainyard
