#include "gui/pages/explore_page.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QScrollArea>
#include <QShortcut>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "gui/charts/breakdown_bar.h"
#include "gui/charts/memory_bars.h"
#include "gui/pages/answer_cards.h"
#include "gui/pages/plan_controls.h"
#include "gui/presenters/answer.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/plan/explore.h"
#include "gui/presenters/plan/variants_model.h"
#include "gui/presenters/text.h"
#include "scenarios/question.h"

namespace trainyard {
namespace {

QLabel* heading(const QString& text) {
  auto* label = new QLabel(text);
  QFont font = label->font();
  font.setBold(true);
  label->setFont(font);
  return label;
}

}  // namespace

ExplorePage::ExplorePage(ScenarioDocument& document, Explore& explore, QWidget* parent)
    : QWidget(parent),
      document_(document),
      explore_(explore),
      controls_(new PlanControls),
      plan_(new QLabel),
      cards_(new AnswerCards),
      breakdown_(new BreakdownBar),
      memory_(new MemoryBars),
      limits_(new QLabel),
      remedies_(new QListWidget),
      table_(new QTableView),
      variants_(new VariantsModel(this)),
      use_(new QPushButton(tr("Use in the scenario"))),
      pin_(new QPushButton(tr("Pin this plan"))),
      splitter_(new QSplitter) {
  splitter_->setObjectName(QStringLiteral("explore"));
  splitter_->setChildrenCollapsible(false);
  splitter_->addWidget(make_controls());
  splitter_->addWidget(make_answer());
  splitter_->setStretchFactor(1, 1);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(splitter_);
  connect(controls_, &PlanControls::chosen, &explore_, &Explore::choose);
  connect(&explore_, &Explore::changed, this, &ExplorePage::show_answer);
  connect(&explore_, &Explore::remedies_changed, this, &ExplorePage::show_remedies);
  show_answer();
}

QWidget* ExplorePage::make_controls() {
  auto* left = new QWidget;
  auto* column = new QVBoxLayout(left);
  auto* simulate = new QPushButton(tr("Simulate"));
  simulate->setObjectName(QStringLiteral("simulate"));
  use_->setObjectName(QStringLiteral("use"));
  column->addWidget(controls_);
  column->addStretch(1);
  column->addWidget(use_);
  column->addWidget(simulate);
  connect(use_, &QPushButton::clicked, this, &ExplorePage::use_asked);
  connect(simulate, &QPushButton::clicked, this, &ExplorePage::simulate_asked);
  auto* scroll = new QScrollArea;
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setWidget(left);
  controls_->follow(*scroll);
  scroll->setMinimumWidth(left->fontMetrics().averageCharWidth() * 46);
  return scroll;
}

QWidget* ExplorePage::make_answer() {
  plan_->setObjectName(QStringLiteral("explored_plan"));
  plan_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  plan_->setWordWrap(true);
  limits_->setWordWrap(true);
  remedies_->setObjectName(QStringLiteral("remedies"));
  remedies_->setAccessibleName(tr("What would help"));
  remedies_->setAlternatingRowColors(true);
  remedies_->setWordWrap(true);
  remedies_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  remedies_->setResizeMode(QListView::Adjust);
  connect(remedies_, &QListWidget::itemClicked, this, &ExplorePage::take_remedy);
  auto* enter = new QShortcut(remedies_);
  enter->setKeys({QKeySequence(Qt::Key_Return), QKeySequence(Qt::Key_Enter)});
  enter->setContext(Qt::WidgetShortcut);
  connect(enter, &QShortcut::activated, this, [this] { take_remedy(remedies_->currentItem()); });
  auto* help = new QVBoxLayout;
  help->addWidget(heading(tr("What limits this")));
  help->addWidget(limits_);
  help->addWidget(heading(tr("What would help (a click or Enter takes it)")));
  help->addWidget(remedies_, 1);
  auto* memory = new QVBoxLayout;
  memory->addWidget(heading(tr("Memory of each stage")));
  memory->addWidget(memory_, 1);
  auto* middle = new QHBoxLayout;
  middle->addLayout(memory, 3);
  middle->addLayout(help, 2);
  auto* right = new QWidget;
  auto* column = new QVBoxLayout(right);
  column->addWidget(plan_);
  column->addWidget(cards_);
  column->addWidget(heading(tr("Where the time goes")));
  column->addWidget(breakdown_);
  column->addLayout(middle, 3);
  column->addWidget(make_variants(), 2);
  return right;
}

QWidget* ExplorePage::make_variants() {
  auto* back = new QPushButton(tr("Back to it"));
  auto* unpin = new QPushButton(tr("Unpin"));
  pin_->setObjectName(QStringLiteral("pin"));
  const auto column_now = [this] { return table_->currentIndex().column(); };
  connect(pin_, &QPushButton::clicked, variants_, &VariantsModel::pin);
  connect(unpin, &QPushButton::clicked, this,
          [this, column_now] { variants_->unpin(column_now()); });
  connect(back, &QPushButton::clicked, this, [this, column_now] {
    const int column = column_now();
    if (column < 0 || column >= variants_->pinned()) return;
    explore_.set_request(variants_->request_at(column));
  });
  back->setObjectName(QStringLiteral("back"));
  unpin->setObjectName(QStringLiteral("unpin"));
  table_->setModel(variants_);
  const auto offer = [this, back, unpin, column_now] {
    const int column = column_now();
    for (QPushButton* button : {back, unpin}) {
      button->setEnabled(column >= 0 && column < variants_->pinned());
    }
  };
  connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this, offer);
  connect(variants_, &QAbstractItemModel::modelReset, this, offer);
  connect(variants_, &QAbstractItemModel::columnsRemoved, this, offer);
  offer();
  table_->setObjectName(QStringLiteral("variants"));
  table_->setAccessibleName(tr("Pinned variants"));
  table_->setAlternatingRowColors(true);
  table_->setTabKeyNavigation(false);
  table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 6);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(heading(tr("Variants")));
  buttons->addStretch(1);
  buttons->addWidget(pin_);
  buttons->addWidget(back);
  buttons->addWidget(unpin);
  auto* all = new QWidget;
  auto* column = new QVBoxLayout(all);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(buttons);
  column->addWidget(table_);
  return all;
}

void ExplorePage::show_answer() {
  const auto& candidate = explore_.candidate();
  controls_->show_controls(explore_.controls());
  variants_->set_now(candidate, explore_.question(), explore_.request());
  variants_->mark([this](const auto& question) {
    using Age = VariantsModel::Age;
    if (document_.still_asks(question)) return Age::present;
    return document_.is_of_another(question) ? Age::of_another_document : Age::before_a_change;
  });
  for (QPushButton* button : {use_, pin_}) button->setEnabled(candidate.has_value());
  remedies_->clear();
  if (!candidate) {
    plan_->setText(explore_.problem());
    cards_->show_lines({});
    breakdown_->set_parts({});
    memory_->set_stages({}, 0);
    limits_->clear();
    return;
  }
  const Cluster& cluster = explore_.question()->job.job.cluster;
  QStringList lines = {plan_text(candidate->plan), explore_.replaced(), explore_.origin(),
                       explore_.assumed()};
  lines.removeAll(QString());
  plan_->setText(lines.join(QLatin1Char('\n')));
  cards_->show_lines(answer_lines(*candidate, explore_.question()->job.job));
  breakdown_->set_parts(breakdown_bar(candidate->estimate));
  memory_->set_stages(memory_bars(candidate->estimate), cluster.device.memory.value());
  limits_->setText(unbroken(limits_text(*candidate, cluster)));
}

void ExplorePage::take_remedy(const QListWidgetItem* item) {
  const int at = item == nullptr ? -1 : item->data(Qt::UserRole).toInt();
  const auto& plans = explore_.remedies().plans;
  if (at < 0 || at >= static_cast<int>(plans.size())) return;
  explore_.set_request(*plans[static_cast<std::size_t>(at)].request);
}

void ExplorePage::show_remedies() {
  remedies_->clear();
  if (!explore_.candidate()) return;
  const Estimate& before = explore_.candidate()->estimate;
  const auto add = [&](const Remedy& remedy, int at) {
    auto* item = new QListWidgetItem(unbroken(remedy_text(remedy, before)), remedies_);
    item->setData(Qt::UserRole, at);
    if (at < 0) item->setFlags(Qt::ItemIsEnabled);
  };
  int at = 0;
  for (const Remedy& remedy : explore_.remedies().plans) add(remedy, at++);
  if (at == 0) {
    const auto& closest = explore_.remedies().closest;
    const QString words = closest           ? closest_text(*closest)
                          : before.feasible ? tr("No neighbouring plan is faster.")
                                            : tr("No neighbouring plan is legal.");
    auto* none = new QListWidgetItem(unbroken(words), remedies_);
    none->setFlags(Qt::ItemIsEnabled);
    none->setData(Qt::UserRole, -1);
  }
  for (const Remedy& remedy : explore_.remedies().hardware) add(remedy, -1);
}

}  // namespace trainyard
