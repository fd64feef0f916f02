// A valid program is broken in one way per test, and check() must say so in a sentence.
#include "model/program/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/program/lower.h"
#include "model/program/view.h"
#include "model/schedule/schedule.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Checked {
  Program program;
  RankLayout layout;
};

Checked lowered(const PlanRequest& request, bool tied = false) {
  const auto setting = tiny_setting(tiny_gpt(tied), request);
  return {lower(setting.model, setting.training, setting.plan).value(),
          RankLayout(setting.plan, setting.model.kv_heads)};
}

// Ranks 0 and 1 are the first stage, 2 and 3 the second.
Checked two_stages(const char* schedule = "1f1b", bool tied = false) {
  PlanRequest request;
  request.tensor_parallel = 2;
  request.sequence_parallel = true;
  request.pipeline_parallel = 2;
  request.data_parallel = 1;
  request.schedule = schedule;
  request.micro_batch = 4;  // two micro-batches
  return lowered(request, tied);
}

std::string message(const Expected<void>& result) {
  return result ? "valid" : result.error().message;
}

Block& block(Program& program, std::string_view name) {
  return *std::find_if(program.blocks.begin(), program.blocks.end(),
                       [name](const Block& b) { return b.name == name; });
}

Operand& operand(Program& program, Block& of, OperationKind kind, std::string_view buffer) {
  for (Operation& operation : of.operations) {
    if (operation.kind != kind) continue;
    for (Operand& candidate : operation.operands) {
      if (program.buffer(candidate.buffer).name == buffer) {
        return candidate;
      }
    }
  }
  ADD_FAILURE() << "no operand " << buffer;
  return of.operations.front().operands.front();
}

void drop_operation(Block& of, OperationKind kind) {
  const auto found = std::find_if(of.operations.begin(), of.operations.end(),
                                  [kind](const Operation& op) { return op.kind == kind; });
  ASSERT_NE(found, of.operations.end());
  of.operations.erase(found);
}

void drop_calls(Program& program, int stage, std::string_view name) {
  for (Body& body : program.stages[static_cast<std::size_t>(stage)].bodies) {
    std::erase_if(body.calls, [&](const BlockCall& call) {
      return program.blocks[static_cast<std::size_t>(call.block)].name == name;
    });
  }
}

TEST(ProgramCheck, HoldsForEverySchedule) {
  for (const Schedule* schedule : schedules()) {
    for (const bool tied : {false, true}) {
      PlanRequest request;
      request.schedule = schedule->name;
      request.tensor_parallel = 2;
      request.sequence_parallel = true;
      request.pipeline_parallel = schedule->needs_chunks || schedule->route != Route::loop ? 2 : 4;
      request.virtual_stages = schedule->needs_chunks ? 2 : 1;
      request.data_parallel = 2;
      if (tied) {
        request.zero_stage = 1;
      } else {
        request.recompute.mode = RecomputeMode::full;
      }
      const Checked valid = lowered(request, tied);
      EXPECT_EQ(message(check(valid.program, valid.layout)), "valid") << schedule->name;
    }
  }
}

// The number of operations that repeat forward work, for one micro-batch on one stage.
int repeated(const Program& program, int stage) {
  int count = 0;
  for (const Body& body : program.stages[static_cast<std::size_t>(stage)].bodies) {
    for (const BlockCall& call : body.calls) {
      const Block& of = program.blocks[static_cast<std::size_t>(call.block)];
      count += static_cast<int>(std::count_if(of.operations.begin(), of.operations.end(),
                                              [](const Operation& op) { return op.recomputed; }));
    }
  }
  return count;
}

// Second computation: the same stage of a plan that recomputes in the same way everywhere.
TEST(Program, RepeatsOnEachStageWhatThePlanSaysOfIt) {
  PlanRequest request{.pipeline_parallel = 4, .data_parallel = 1};
  request.recompute_per_stage = {
      {RecomputeMode::full, 0}, {}, {RecomputeMode::selective, 0}, {RecomputeMode::full, 0}};
  const auto setting = [&](const PlanRequest& asked) {
    Training training = tiny_training();
    training.stack.flash_attention = false;
    return tiny_setting(tiny_gpt(false), training, asked);
  };
  const auto program_of = [&](const PlanRequest& asked) {
    const auto tiny = setting(asked);
    return lower(tiny.model, tiny.training, tiny.plan).value();
  };
  const Program mixed = program_of(request);
  EXPECT_GT(repeated(mixed, 0), repeated(mixed, 2));
  EXPECT_GT(repeated(mixed, 2), 0);
  for (int stage = 0; stage < 4; ++stage) {
    PlanRequest alike{.pipeline_parallel = 4, .data_parallel = 1};
    alike.recompute = request.recompute_per_stage[static_cast<std::size_t>(stage)];
    EXPECT_EQ(repeated(mixed, stage), repeated(program_of(alike), stage)) << stage;
  }
  const auto tiny = setting(request);
  EXPECT_EQ(message(check(mixed, RankLayout(tiny.plan, tiny.model.kv_heads))), "valid");
}

TEST(ProgramCheck, HoldsOverContextRanks) {
  for (const auto algorithm :
       {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
    PlanRequest request;
    request.context_parallel = 4;
    request.context_parallel_algorithm = algorithm;
    request.pipeline_parallel = 2;
    request.data_parallel = 2;
    const Checked valid = lowered(request);
    EXPECT_EQ(message(check(valid.program, valid.layout)), "valid");
  }
}

TEST(ProgramCheck, NamesABufferThatIsReadBeforeItIsWritten) {
  Checked broken = two_stages();
  drop_operation(block(broken.program, "layer forward"), OperationKind::norm);
  EXPECT_THAT(message(check(broken.program, broken.layout)),
              AllOf(HasSubstr("rank 0: all-gather over the tensor group of layer 0"),
                    HasSubstr("micro-batch 0"),
                    HasSubstr("reads \"attention input\" before it is written")));
}

TEST(ProgramCheck, NamesABufferThatIsReadAfterItWasFreed) {
  Checked broken = two_stages();
  Program& program = broken.program;
  operand(program, block(program, "layer forward"), OperationKind::linear, "queries").frees = true;
  EXPECT_THAT(message(check(program, broken.layout)),
              AllOf(HasSubstr("rank 0: attention (attention core) of layer 0"),
                    HasSubstr("reads \"queries\" after it was freed")));
}

TEST(ProgramCheck, NamesABufferThatIsFreedTwice) {
  Checked broken = two_stages();
  Program& program = broken.program;
  operand(program, block(program, "layer forward"), OperationKind::attention, "attention context")
      .frees = true;
  operand(program, block(program, "layer forward"), OperationKind::linear, "attention context")
      .frees = true;
  EXPECT_THAT(message(check(program, broken.layout)),
              HasSubstr("frees \"attention context\", which was freed"));
}

TEST(ProgramCheck, NamesABufferThatNobodyFrees) {
  Checked broken = two_stages("gpipe");
  Program& program = broken.program;
  operand(program, block(program, "layer backward"), OperationKind::activation_gradient, "mlp up")
      .frees = false;
  EXPECT_THAT(message(check(program, broken.layout)),
              AllOf(HasSubstr("rank 0: linear (mlp up) of layer 0"),
                    HasSubstr("creates \"mlp up\", which nobody frees")));
}

TEST(ProgramCheck, NamesABufferThatIsCreatedOverItself) {
  Checked broken = two_stages();
  Program& program = broken.program;
  operand(program, block(program, "layer forward"), OperationKind::linear, "mlp gathered").frees =
      false;
  EXPECT_THAT(message(check(program, broken.layout)),
              AllOf(HasSubstr("rank 0: all-gather over the tensor group of layer 1"),
                    HasSubstr("creates \"mlp gathered\" while the one before it is in use")));
}

TEST(ProgramCheck, NamesAStateThatIsFreed) {
  Checked broken = two_stages();
  Program& program = broken.program;
  operand(program, block(program, "layer forward"), OperationKind::norm, "mlp norm scale").frees =
      true;
  EXPECT_THAT(message(check(program, broken.layout)),
              HasSubstr("frees \"mlp norm scale\", which outlives the step"));
}

TEST(ProgramCheck, NamesACollectiveThatOneStageMisses) {
  Checked broken = two_stages();
  drop_calls(broken.program, 1, "gradient norm");
  EXPECT_EQ(
      message(check(broken.program, broken.layout)),
      "rank 0: all-reduce over the model group, end of the step has no counterpart on rank 2");
  Checked other = two_stages();
  drop_calls(other.program, 0, "gradient norm");
  EXPECT_EQ(
      message(check(other.program, other.layout)),
      "rank 2: all-reduce over the model group, end of the step has no counterpart on rank 0");
}

TEST(ProgramCheck, NamesACollectiveOfUnlikeMessages) {
  Checked broken = two_stages("1f1b", true);
  block(broken.program, "tied head").operations.front().message = Bytes(1);
  EXPECT_THAT(message(check(broken.program, broken.layout)),
              AllOf(HasSubstr("rank 0: all-reduce over the tied-embedding group"),
                    HasSubstr("meets another one on rank 2")));
}

TEST(ProgramCheck, NamesASendWithoutReceive) {
  Checked broken = two_stages();
  drop_operation(block(broken.program, "receive gradient"), OperationKind::receive);
  EXPECT_THAT(message(check_sends(broken.program, broken.layout)),
              AllOf(HasSubstr("rank 2: send"), HasSubstr("has no receive on rank 0")));
}

TEST(ProgramCheck, NamesAReceiveWithoutSend) {
  Checked broken = two_stages();
  drop_operation(block(broken.program, "send"), OperationKind::send);
  EXPECT_THAT(message(check_sends(broken.program, broken.layout)),
              AllOf(HasSubstr("rank 2: receive"), HasSubstr("has no send on rank 0")));
}

TEST(ProgramCheck, NamesAMessageOutOfOrder) {
  Checked broken = two_stages("gpipe");
  std::vector<Step>& steps = broken.program.stages[1].steps;
  std::swap(steps[0], steps[1]);  // the second forward pass first
  EXPECT_THAT(message(check(broken.program, broken.layout)),
              AllOf(HasSubstr("rank 2: receive, micro-batch 1"),
                    HasSubstr("gets another message from rank 0: send, micro-batch 0")));
}

// The first stage wants the gradient of micro-batch 0 before it sends micro-batch 1. The second
// stage gives that gradient only after micro-batch 1 has come.
TEST(ProgramCheck, NamesWhoWaitsForWhomInADeadlock) {
  Checked broken = two_stages("gpipe");
  std::vector<Step>& first = broken.program.stages[0].steps;  // F0 F1 B1 B0
  std::vector<Step>& second = broken.program.stages[1].steps;
  ASSERT_EQ(first.size(), 5u);
  first = {first[0], first[3], first[1], first[2], first[4]};
  std::swap(second[2], second[3]);
  EXPECT_THAT(message(check(broken.program, broken.layout)),
              HasSubstr("deadlock: rank 0 waits for ever for rank 2: receive, micro-batch 0, "
                        "chunk 0, backward"));
}

TEST(ProgramView, HasAsManyOperationsAsTheStageCounts) {
  const Checked valid = two_stages();
  for (int stage = 0; stage < 2; ++stage) {
    const OperationView view = operations_of(valid.program, stage);
    EXPECT_EQ(std::distance(view.begin(), view.end()),
              valid.program.stages[static_cast<std::size_t>(stage)].operations);
  }
}

TEST(RankLayout, FindsTheMembersOfEveryGroup) {
  PlanRequest request;
  request.tensor_parallel = 4;
  request.pipeline_parallel = 2;
  request.data_parallel = 2;
  const auto setting = tiny_setting(tiny_llama(true), request);  // tp, dp, pp from the fastest
  const RankLayout layout(setting.plan, 2);
  const auto ranks = [&](Group group, int rank) {
    std::vector<int> list;
    const GroupMembers members = layout.members(group, rank);
    for (int i = 0; i < members.size(); ++i) {
      list.push_back(members[i]);
      EXPECT_EQ(members.index_of(members[i]), i);
    }
    return list;
  };
  EXPECT_THAT(ranks(Group::tensor, 6), testing::ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(ranks(Group::kv_head, 6), testing::ElementsAre(6, 7));
  EXPECT_THAT(ranks(Group::dense_gradient, 6), testing::ElementsAre(2, 6));
  EXPECT_THAT(ranks(Group::tied_embedding, 6), testing::ElementsAre(6, 14));
  EXPECT_THAT(ranks(Group::model, 6), testing::ElementsAre(4, 5, 6, 7, 12, 13, 14, 15));
}

}  // namespace
}  // namespace trainyard
