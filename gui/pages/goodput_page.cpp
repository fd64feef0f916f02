#include "gui/pages/goodput_page.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QSplitter>
#include <QTreeView>
#include <QVBoxLayout>
#include <cmath>

#include "gui/charts/breakdown_bar.h"
#include "gui/charts/colours.h"
#include "gui/charts/histogram.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/loss_tree.h"
#include "gui/presenters/plan/explore.h"
#include "gui/presenters/run_lives.h"
#include "gui/presenters/text.h"
#include "scenarios/text/readable.h"

namespace trainyard {

GoodputPage::GoodputPage(ScenarioDocument& document, Explore& explore, RunLives& lives,
                         QWidget* parent)
    : QWidget(parent),
      document_(document),
      explore_(explore),
      lives_(lives),
      simulate_(new QPushButton(tr("Simulate runs"))),
      cancel_(new QPushButton(tr("Cancel"))),
      progress_(new QProgressBar),
      summary_(new QLabel),
      interval_(new QLabel),
      use_interval_(new QPushButton(tr("Use the best interval in the scenario"))),
      losses_(new BreakdownBar),
      model_(new LossModel(this)),
      tree_(new QTreeView),
      spread_(new QLabel),
      dates_(new Histogram),
      splitter_(new QSplitter) {
  simulate_->setObjectName(QStringLiteral("simulate"));
  summary_->setObjectName(QStringLiteral("goodput"));
  summary_->setWordWrap(true);
  progress_->setRange(0, 1000);
  progress_->setTextVisible(false);
  losses_->setAccessibleName(tr("Where the time of the run goes"));
  dates_->setAccessibleName(tr("The simulated lives of the run"));
  auto* bar = new QHBoxLayout;
  bar->addWidget(simulate_);
  bar->addWidget(cancel_);
  bar->addWidget(progress_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(bar);
  layout->addWidget(summary_);
  layout->addWidget(make_interval());
  layout->addWidget(new QLabel(tr("Where the time of the run goes")));
  layout->addWidget(losses_);
  auto* right = new QWidget;
  auto* column = new QVBoxLayout(right);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(spread_);
  column->addWidget(dates_, 1);
  splitter_->setObjectName(QStringLiteral("goodput_parts"));
  splitter_->setChildrenCollapsible(false);
  splitter_->addWidget(make_losses());
  splitter_->addWidget(right);
  splitter_->setSizes({400, 600});  // only their ratio counts
  layout->addWidget(splitter_, 1);
  connect(simulate_, &QPushButton::clicked, this, &GoodputPage::simulate_asked);
  connect(cancel_, &QPushButton::clicked, this, [this] { lives_.cancel(); });
  connect(&lives_, &RunLives::started, this, [this] {
    simulate_->setEnabled(false);
    cancel_->setEnabled(true);
    summary_->setText(tr("Simulating …"));
  });
  connect(&lives_, &RunLives::progressed, this, [this](double share) {
    progress_->setValue(static_cast<int>(std::lround(share * 1000)));
  });
  connect(&lives_, &RunLives::finished, this, &GoodputPage::show_answer);
  connect(&lives_, &RunLives::tuned, this, &GoodputPage::show_interval);
  connect(&document_, &ScenarioDocument::changed, this, &GoodputPage::show_summary);
  connect(&explore_, &Explore::changed, this, &GoodputPage::show_summary);
  show_answer();
}

QWidget* GoodputPage::make_interval() {
  interval_->setObjectName(QStringLiteral("interval"));
  interval_->setWordWrap(true);
  use_interval_->setObjectName(QStringLiteral("use_interval"));
  connect(use_interval_, &QPushButton::clicked, this, &GoodputPage::use_interval);
  auto* bar = new QWidget;
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(interval_, 1);
  row->addWidget(use_interval_);
  return bar;
}

QWidget* GoodputPage::make_losses() {
  tree_->setModel(model_);
  tree_->setObjectName(QStringLiteral("losses"));
  tree_->setAccessibleName(tr("Where the time of the run goes"));
  tree_->setAlternatingRowColors(true);
  tree_->setUniformRowHeights(true);
  tree_->setTabKeyNavigation(false);
  tree_->header()->setStretchLastSection(false);
  tree_->header()->setSectionResizeMode(LossModel::label_column, QHeaderView::Stretch);
  for (const int column : {LossModel::time_column, LossModel::share_column}) {
    tree_->header()->setSectionResizeMode(column, QHeaderView::ResizeToContents);
  }
  tree_->setMinimumWidth(tree_->fontMetrics().averageCharWidth() * 48);
  return tree_;
}

void GoodputPage::show_answer() {
  simulate_->setEnabled(true);
  const auto& answer = lives_.answer();
  losses_->set_parts(answer ? answer->parts : std::vector<BarPart>());
  model_->set_nodes(answer ? answer->losses : std::vector<LossNode>());
  tree_->expandAll();
  progress_->setValue(answer ? progress_->maximum() : 0);
  dates_->set_why_none(tr("The lives are drawn here once they are simulated."));
  dates_->set_values(answer ? answer->spread : std::vector<double>(),
                     answer ? answer->spread_unit : QString(), tr("lives"));
  spread_->setText(answer ? answer->spread_name : tr("How long the run takes"));
  show_summary();
}

// The best interval can be used only while the scenario is the one that it was found for.
void GoodputPage::show_interval() {
  cancel_->setEnabled(lives_.busy() || lives_.is_tuning());
  interval_->setText(lives_.interval_text());
  const auto& answer = lives_.answer();
  use_interval_->setEnabled(answer && lives_.gains() && document_.still_asks(answer->question));
}

void GoodputPage::use_interval() {
  const std::string typed = duration(lives_.best_interval()->interval);
  const auto used = document_.set_value("/checkpoint/interval", typed);
  if (!used) summary_->setText(qt(used.error()));
}

void GoodputPage::show_summary() {
  show_interval();
  if (lives_.busy()) return;
  const auto& answer = lives_.answer();
  QPalette colours = palette();
  if (answer && answer->misfits) colours.setColor(QPalette::WindowText, alarm_colour(palette()));
  summary_->setPalette(colours);
  if (answer) {
    const QString age = document_.age_of(answer->question);
    const QString why = lives_.problem();
    summary_->setText((why.isEmpty() ? why : tr("%1 Below is the one before. ").arg(why)) +
                      (age.isEmpty() ? explore_.age_of(answer->plan) : age) + answer->summary);
  } else if (!lives_.problem().isEmpty()) {
    summary_->setText(lives_.problem());
  } else {
    summary_->setText(
        tr("Failures, checkpoints and restarts of the whole run, under the plan of "
           "the Explore page."));
  }
}

}  // namespace trainyard
