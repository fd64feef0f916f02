// Which communicators a rank belongs to, for a plan small enough to check by hand.
#include "executor/memberships.h"

#include <gtest/gtest.h>

#include <map>

#include "model/program/lower.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

std::map<Group, Membership> memberships_of(int rank) {
  PlanRequest request;
  request.tensor_parallel = 2;
  request.pipeline_parallel = 2;
  request.data_parallel = 2;
  const Setting setting = tiny_setting(tiny_llama(false), tiny_training(), request);
  const auto program = lower(setting.model, setting.training, setting.plan);
  EXPECT_TRUE(program);
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  std::map<Group, Membership> by_group;
  for (const Membership& of : memberships(*program, layout, rank)) by_group[of.group] = of;
  return by_group;
}

// Tensor ranks are neighbours, data ranks two apart, stages four.
TEST(Memberships, AreTheGroupsThatTheProgramNames) {
  const auto of_five = memberships_of(5), of_seven = memberships_of(7);
  EXPECT_EQ(of_five.at(Group::tensor).color, 4);
  EXPECT_EQ(of_five.at(Group::tensor).place, 1);
  EXPECT_EQ(of_five.at(Group::dense_gradient).color, 5);
  EXPECT_EQ(of_five.at(Group::dense_gradient).place, 0);
  EXPECT_EQ(of_seven.at(Group::tensor).color, 6);
  EXPECT_EQ(of_seven.at(Group::dense_gradient).color, 5);
  EXPECT_EQ(of_seven.at(Group::dense_gradient).place, 1);
  EXPECT_EQ(of_five.count(Group::context), 0U);
}

TEST(Memberships, AreNotOfTheWorldWhichIsThereAlready) {
  EXPECT_EQ(memberships_of(0).count(Group::all), 0U);
  EXPECT_EQ(memberships_of(0).count(Group::none), 0U);
}

}  // namespace
}  // namespace trainyard
