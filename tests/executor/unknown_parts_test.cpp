// The part of a tensor that another rank holds is set to not-a-number where a test looks for
// misuse, and left untouched where times count.
#include <gtest/gtest.h>

#include <cmath>

#include "executor/cpu/exchange.h"

namespace trainyard {
namespace {

Tensor<float> numbers_from(float first) {
  Tensor<float> of(4, 2);
  for (Eigen::Index i = 0; i < of.size(); ++i) of.data()[i] = first + static_cast<float>(i);
  return of;
}

// The second of two ranks knows the second half.
void expect_known(const Tensor<float>& whole, bool marks, float first, float before) {
  for (Eigen::Index i = 0; i < 4; ++i) {
    const float number = whole.data()[i];
    EXPECT_EQ(std::isnan(number), marks) << i;
    if (!marks) {
      EXPECT_EQ(number, before + static_cast<float>(i));
    }
    EXPECT_EQ(whole.data()[4 + i], first + static_cast<float>(i));
  }
}

TEST(UnknownParts, OfScatteredGradientsAreNoneWhereTheyAreMarked) {
  const RankLayout layout({.data_parallel = 2}, 1);
  const auto transport = make_stand_in_transport(layout, 1);
  Operation operation{.kind = OperationKind::reduce_scatter};
  operation.group = Group::dense_shard;
  operation.shards = 2;
  for (const bool marks : {true, false}) {
    Tensor<float> whole = numbers_from(1);
    const Exchange exchange{operation, *transport, 2, 1, marks};
    ASSERT_TRUE(take_part(exchange, {.in_place = {&whole}}));
    // A rank alone receives copies of its own part in place of its peer's.
    expect_known(whole, marks, 1, 1);
  }
}

TEST(UnknownParts, OfUpdatedWeightsAreNoneWhereTheyAreMarked) {
  Operation operation{.kind = OperationKind::copy};
  operation.shards = 2;
  ProgramBuffer part_of_weight;
  part_of_weight.part_of = 0;
  for (const bool marks : {true, false}) {
    Setting setting;
    setting.marks_unknown = marks;
    Tensor<float> part = numbers_from(11).topRows(2), whole = numbers_from(1);
    Operands<float> operands{.in = {&part}, .in_place = {&whole}};
    operands.in_buffers = {&part_of_weight};
    Where where{setting, {}, {}};
    where.shard = 1;
    compute(operation, where, operands);
    expect_known(whole, marks, 11, 1);
  }
}

}  // namespace
}  // namespace trainyard
