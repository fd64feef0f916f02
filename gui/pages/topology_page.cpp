#include "gui/pages/topology_page.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "gui/charts/cluster_chart.h"
#include "gui/presenters/answer.h"
#include "gui/presenters/cluster/cluster_load.h"
#include "gui/presenters/cluster/cluster_map.h"
#include "gui/presenters/cluster/placement_model.h"
#include "gui/presenters/plan/explore.h"
#include "gui/presenters/text.h"

namespace trainyard {

TopologyPage::TopologyPage(Explore& explore, QWidget* parent)
    : QWidget(parent),
      explore_(explore),
      work_(*this, [this](const QString& why) { show_failure(why); }),
      playing_(*this, [this](const QString& why) { show_unknown_load(why); }),
      chart_(new ClusterChart),
      colour_(new QComboBox),
      summary_(new QLabel),
      loads_(new QLabel),
      group_(new QLabel),
      placement_(new PlacementModel(this)),
      table_(new QTableView),
      splitter_(new QSplitter) {
  for (int i = 0; i < kMapColours; ++i) {
    colour_->addItem(ClusterMap::colour_name(static_cast<MapColour>(i)));
  }
  colour_->setObjectName(QStringLiteral("colour"));
  colour_->setAccessibleName(tr("What the colours show"));
  summary_->setObjectName(QStringLiteral("cluster"));
  loads_->setObjectName(QStringLiteral("loads"));
  loads_->setWordWrap(true);
  auto* bar = new QHBoxLayout;
  bar->addWidget(new QLabel(tr("Colour by")));
  bar->addWidget(colour_);
  bar->addWidget(summary_, 1, Qt::AlignRight);
  splitter_->setObjectName(QStringLiteral("topology"));
  splitter_->setChildrenCollapsible(false);
  splitter_->addWidget(chart_);
  splitter_->addWidget(make_side());
  splitter_->setStretchFactor(0, 1);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(bar);
  layout->addWidget(loads_);
  layout->addWidget(splitter_, 1);
  connect(colour_, &QComboBox::currentIndexChanged, this, [this](int colour) {
    chart_->set_colour(static_cast<MapColour>(colour));
    show_group();
  });
  connect(chart_, &ClusterChart::chosen, this, &TopologyPage::show_group);
  connect(&explore_, &Explore::changed, this, [this] {
    is_stale_ = true;
    if (isVisible()) show_cluster();
  });
  show_group();
}

QWidget* TopologyPage::make_side() {
  group_->setObjectName(QStringLiteral("group"));
  group_->setWordWrap(true);
  group_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  group_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  group_->setMinimumHeight(8 * group_->fontMetrics().lineSpacing());
  table_->setModel(placement_);
  table_->setObjectName(QStringLiteral("placement"));
  table_->setAccessibleName(tr("Nodes of every tensor-parallel group"));
  table_->setTabKeyNavigation(false);
  table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 6);
  connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this,
          [this](const QModelIndex& now) {
            if (!now.isValid()) return;
            chart_->select(now.data(PlacementModel::rank_role).toInt());
            show_group();
          });
  auto* side = new QWidget;
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(group_);
  column->addWidget(new QLabel(tr("Nodes of each tensor-parallel group")));
  column->addWidget(table_, 1);
  side->setMinimumWidth(side->fontMetrics().averageCharWidth() * 44);
  return side;
}

void TopologyPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (is_stale_) show_cluster();
}

void TopologyPage::show_cluster() {
  is_stale_ = false;
  if (!explore_.candidate()) {
    work_.stop();
    playing_.stop();
    show_map(nullptr);
    return;
  }
  work_.start([this, question = explore_.question(),
               candidate = *explore_.candidate()](const std::atomic<bool>&) {
    auto map = std::make_shared<const ClusterMap>(question, candidate);
    return Background::Done([this, map = std::move(map)] {
      if (!explore_.candidate()) return;
      show_map(map);
      find_load(map);
    });
  });
}

void TopologyPage::find_load(std::shared_ptr<const ClusterMap> map) {
  loads_->setText(tr("Simulating the step for the load of the links …"));
  playing_.start([this, map = std::move(map)](const std::atomic<bool>& stop) {
    auto found = ClusterLoad::of(*map, stop);
    return Background::Done([this, map, found = std::move(found)] {
      if (chart_->map() != map.get()) return;
      if (found) {
        show_load(std::make_shared<const ClusterLoad>(*found));
      } else {
        show_unknown_load(qt(found.error()));
      }
    });
  });
}

void TopologyPage::show_unknown_load(const QString& why) {
  loads_->setText(tr("The load of the links is not known: %1").arg(why));
}

void TopologyPage::show_load(std::shared_ptr<const ClusterLoad> load) {
  loads_->setText(load->summary);
  chart_->set_load(std::move(load));
  show_group();
}

void TopologyPage::show_failure(const QString& why) {
  show_map(nullptr);
  loads_->setText(why);
}

void TopologyPage::show_map(std::shared_ptr<const ClusterMap> map) {
  summary_->setText(map ? map->summary() : QString());
  loads_->setText(map ? QString() : explore_.problem());
  placement_->set_map(map);
  chart_->set_map(std::move(map));
  show_group();
}

void TopologyPage::show_group() {
  const int rank = chart_->selected();
  const ClusterMap* map = chart_->map();
  if (map != nullptr && rank >= 0) {
    QString text = map->describe_group(rank, static_cast<MapColour>(colour_->currentIndex()));
    if (const ClusterLoad* load = chart_->load()) {
      text += tr("\nload of the rank's busiest link: %1")
                  .arg(percent_text(load->devices[static_cast<std::size_t>(rank)]));
    }
    group_->setText(unbroken(text));
    return;
  }
  group_->setText(
      tr("Click a device to see its group, the group's ring and its slowest "
         "link. The arrows go on from there."));
}

}  // namespace trainyard
