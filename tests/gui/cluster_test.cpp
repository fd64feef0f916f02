// What is drawn of a cluster: racks and links of the topology graph, groups of the plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QHelpEvent>
#include <QTest>
#include <QToolTip>
#include <algorithm>

#include "gui/charts/cluster_chart.h"
#include "gui/charts/colours.h"
#include "gui/presenters/cluster/cluster_load.h"
#include "gui/presenters/cluster/cluster_map.h"
#include "gui/presenters/cluster/placement_model.h"
#include "model/cost/estimate.h"
#include "scenarios/question.h"
#include "scenarios/scenario_text.h"
#include "simulator/step.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

std::shared_ptr<const ClusterMap> map_of(std::shared_ptr<const Question> question) {
  const Plan plan = *requested_plan(question->scenario, question->job);
  Estimate found = estimate(question->job, plan);
  return std::make_shared<const ClusterMap>(std::move(question), Candidate{plan, found, {}});
}

std::shared_ptr<const ClusterMap> map_of(const std::string& cluster, const std::string& plan) {
  const auto question = question_of(
      R"({"trainyard": "scenario/1", "model": "llama-3.1-8b", "cluster": )" + cluster +
          R"(, "training": {"global_batch": 256, "sequence_length": 4096}, "plan": )" + plan + "}",
      "a.json");
  return question ? map_of(std::make_shared<const Question>(*question)) : nullptr;
}

// 2048 nodes of 8, 32 below a leaf: 64 racks, each with cables to the spines and to no other rack.
TEST(ClusterMap, FoldsSixteenThousandDevicesIntoTheRacksOfTheFabric) {
  const auto map = map_of(
      std::make_shared<const Question>(*read_question(example("llama-3.1-405b-16384-h100.json"))));
  ASSERT_EQ(map->racks().size(), 64u);
  for (const MapRack& rack : map->racks()) EXPECT_EQ(rack.nodes.size(), 32u);
  ASSERT_EQ(map->links().size(), 64u);
  for (const MapLink& link : map->links()) EXPECT_EQ(link.to, -1);
  // The bandwidth out of a rack is that of its NICs over the oversubscription, which is 1 in this
  // catalog entry: 32 nodes of 8 × 400 Gbit/s.
  EXPECT_NEAR(map->links().front().bandwidth.value(), 32 * 8 * 50e9, 1e6);
}

// A torus has a switch at every node and a link to each of its neighbours: 4 × 4 nodes have 32.
TEST(ClusterMap, DrawsATorusFromNodeToNode) {
  const auto map = map_of(R"({"device": "h100-sxm-80gb", "devices_per_node": 4, "nodes": 16,
    "intra_node": {"kind": "nvswitch", "bandwidth": "450 GB/s"},
    "inter_node": {"kind": "torus", "nics_per_node": 4, "bandwidth": "400 Gbit/s",
                   "dimensions": [4, 4]}})",
                          R"({"tensor_parallel": 4})");
  ASSERT_NE(map, nullptr);
  EXPECT_EQ(map->racks().size(), 16u);
  EXPECT_EQ(map->links().size(), 32u);
  EXPECT_TRUE(std::ranges::all_of(map->links(), [](const MapLink& link) { return link.to >= 0; }));
}

// "1 node", not "1 nodes"; and the bandwidth out of its rack is that of its NICs, however many
// cables carry it.
TEST(ClusterMap, CountsInTheSingularToo) {
  const auto map = map_of(R"({"node": "dgx-h100-80gb", "nodes": 1})", R"({"tensor_parallel": 2})");
  ASSERT_NE(map, nullptr);
  const std::string summary = map->summary().toStdString();
  EXPECT_THAT(summary, ::testing::StartsWith("8 devices in 1 node and 1 rack"));
  EXPECT_THAT(summary, ::testing::Not(::testing::HasSubstr("cables")));
}

class Mapped : public testing::Test {
 protected:
  std::shared_ptr<const ClusterMap> map_ =
      map_of(R"({"node": "dgx-h100-80gb", "nodes": 4})",
             R"({"tensor_parallel": 2, "pipeline_parallel": 4, "context_parallel": 2})");
};

// Every rank is in exactly one group of each kind, and stands in it at its own place.
TEST_F(Mapped, GroupsCutTheRanks) {
  ASSERT_NE(map_, nullptr);
  for (const MapColour colour : {MapColour::stage, MapColour::tensor, MapColour::context}) {
    std::vector<int> seen(32);
    for (int rank = 0; rank < 32; ++rank) {
      const std::vector<int> members = map_->members(rank, colour);
      ASSERT_EQ(static_cast<int>(members.size()), map_->places(colour));
      EXPECT_EQ(members[static_cast<std::size_t>(map_->place_of(rank, colour))], rank);
      if (members.front() != rank) continue;
      for (const int member : members) ++seen[static_cast<std::size_t>(member)];
    }
    EXPECT_THAT(seen, ::testing::Each(1));
  }
}

TEST_F(Mapped, TheSlowestHopOfARingLeavesTheNode) {
  const QString inside = map_->describe_group(0, MapColour::tensor);
  EXPECT_TRUE(inside.contains(QStringLiteral("0 of them between NVLink domains")));
  const QString across = map_->describe_group(0, MapColour::stage);
  EXPECT_TRUE(across.contains(QStringLiteral("slowest: rank"))) << across.toStdString();
  EXPECT_FALSE(across.contains(QStringLiteral(" 0 of them")));
}

// A stage sends through its own NIC of 400 Gbit/s = 50 GB/s, even if other stages share its node.
// The protocol costs a part: the simulator moves 32 MiB in 801.5 µs, which is 41.9 GB/s.
TEST(ClusterMap, AHopOfAPipelineIsNoFasterThanItsNic) {
  const auto map = map_of(R"({"node": "dgx-h100-80gb", "nodes": 2})",
                          R"({"tensor_parallel": 2, "pipeline_parallel": 4})");
  ASSERT_NE(map, nullptr);
  const std::string text = map->describe_group(0, MapColour::stage).toStdString();
  const std::size_t end = text.find(" GB/s");
  ASSERT_NE(end, std::string::npos) << text;
  const double rate = std::stod(text.substr(text.rfind(' ', end - 1)));
  EXPECT_GT(rate, 40) << text;
  EXPECT_LT(rate, 50) << text;
}

// The simulation reports loads by kind of link; the busiest device link has the largest of them.
TEST_F(Mapped, LoadsAreThoseOfTheSimulatedStep) {
  const std::atomic<bool> stop = false;
  const auto load = ClusterLoad::of(*map_, stop);
  ASSERT_TRUE(load) << load.error().message;
  const auto simulation = simulate(map_->question().job, map_->plan());
  ASSERT_TRUE(simulation);
  double most = 0;
  for (const LinkUtilisation& kind : simulation->links) most = std::max(most, kind.most);
  EXPECT_GT(most, 0);
  EXPECT_NEAR(std::ranges::max(load->devices), most, 1e-9);
  EXPECT_DOUBLE_EQ(load->most, std::ranges::max(load->devices));
}

// Each leaf has one node of one device, and its uplink has half the NIC's bandwidth. All bytes of
// the NIC cross the rack's link, so its load is twice the NIC's.
TEST(ClusterLoads, OfARackIsWhatItsNicsBring) {
  const auto map = map_of(R"({"device": "h100-sxm-80gb", "devices_per_node": 1, "nodes": 4,
    "intra_node": {"kind": "nvswitch", "bandwidth": "450 GB/s"},
    "inter_node": {"kind": "fat-tree", "nics_per_node": 1, "bandwidth": "400 Gbit/s",
                   "oversubscription": 2, "nodes_per_leaf": 1}})",
                          R"({"pipeline_parallel": 2})");
  ASSERT_NE(map, nullptr);
  ASSERT_EQ(map->links().size(), 4u);
  const std::atomic<bool> stop = false;
  const auto load = ClusterLoad::of(*map, stop);
  ASSERT_TRUE(load) << load.error().message;
  for (std::size_t i = 0; i < 4; ++i) {
    const int rack = map->links()[i].from;
    const int node = map->racks()[static_cast<std::size_t>(rack)].nodes.front();
    EXPECT_GT(load->links[i], 0);
    EXPECT_NEAR(load->links[i] / load->devices[static_cast<std::size_t>(node)], 2, 1e-9);
    EXPECT_DOUBLE_EQ(load->links[i], load->busiest[i]);
  }
}

TEST_F(Mapped, TheMatrixHasEveryTensorGroupOnce) {
  PlacementModel model;
  const QAbstractItemModelTester tester(&model,
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  model.set_map(map_);
  ASSERT_EQ(model.rowCount() * model.columnCount() * 2, 32);
  std::vector<int> ranks;
  for (int row = 0; row < model.rowCount(); ++row) {
    for (int column = 0; column < model.columnCount(); ++column) {
      const QModelIndex index = model.index(row, column);
      const int rank = index.data(PlacementModel::rank_role).toInt();
      EXPECT_EQ(model.index_of(rank), index);
      EXPECT_EQ(index.data().toString(), QString::number(rank / 8));
      ranks.push_back(rank);
    }
  }
  std::ranges::sort(ranks);
  EXPECT_TRUE(std::ranges::adjacent_find(ranks) == ranks.end());
}

TEST_F(Mapped, AClickedDeviceIsTheOneUnderTheMouse) {
  ClusterChart chart;
  chart.resize(700, 500);
  chart.set_map(map_);
  chart.show();
  for (const int rank : {0, 13, 31}) {
    QTest::mouseClick(&chart, Qt::LeftButton, {}, chart.box_of(rank).center().toPoint());
    EXPECT_EQ(chart.selected(), rank);
  }
  QTest::keyClick(&chart, Qt::Key_Up);
  EXPECT_EQ(chart.selected(), 30);
}

// Links are grey until the load is known; then the busiest has a colour of the scale's upper end.
TEST_F(Mapped, LinksAreInTheColourOfTheirLoad) {
  ClusterChart chart;
  chart.resize(700, 500);
  const auto two_racks = map_of(R"({"device": "h100-sxm-80gb", "devices_per_node": 1, "nodes": 4,
    "intra_node": {"kind": "nvswitch", "bandwidth": "450 GB/s"},
    "inter_node": {"kind": "fat-tree", "nics_per_node": 1, "bandwidth": "400 Gbit/s",
                   "nodes_per_leaf": 2}})",
                                R"({"pipeline_parallel": 2})");
  ASSERT_NE(two_racks, nullptr);
  chart.set_map(two_racks);
  const QPolygonF way = chart.way_of(two_racks->links().front());
  const QPoint middle = ((way[1] + way[2]) / 2).toPoint();
  const auto saturation = [&] { return chart.grab().toImage().pixelColor(middle).hslSaturation(); };
  EXPECT_LT(saturation(), 60);
  ClusterLoad load;
  load.devices.assign(4, 0.1);
  load.links = load.busiest = {0.2, 0.2};
  load.most = 0.2;
  chart.set_load(std::make_shared<const ClusterLoad>(load));
  EXPECT_GT(saturation(), 120);
  QHelpEvent help(QEvent::ToolTip, middle, chart.mapToGlobal(middle));
  QApplication::sendEvent(&chart, &help);
  EXPECT_TRUE(QToolTip::text().contains(QStringLiteral("to the spines")))
      << QToolTip::text().toStdString();
  EXPECT_TRUE(QToolTip::text().contains(QStringLiteral("load 20.0")));
  EXPECT_TRUE(chart.data_text().contains(QStringLiteral("rack 0 to the spines\t")));
  // The scale ends at the load of the busiest link, however small that is.
  load.most = 0.114;
  load.links = load.busiest = {0.114, 0.114};
  chart.set_load(std::make_shared<const ClusterLoad>(load));
  EXPECT_EQ(chart.grab().toImage().pixelColor(middle).rgb(), alarm_colour(chart.palette()).rgb());
}

}  // namespace
}  // namespace trainyard
