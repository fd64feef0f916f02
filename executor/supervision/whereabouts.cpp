#include "executor/supervision/whereabouts.h"

#include <fmt/format.h>

namespace trainyard {
std::string described_operation(const Program& program, const RankLayout& layout, int rank,
                                std::int64_t number) {
  for (const IssuedOperation issued : operations_of(program, layout.coordinates(rank).stage)) {
    if (number-- == 0) return described(issued);
  }
  return "after its last operation";
}

std::vector<std::int64_t> operations_at(const BoardHead& head) {
  std::vector<std::int64_t> operations;
  for (const auto& operation : head.under_way) {
    if (operation >= 0) operations.push_back(operation);
  }
  if (operations.empty() && head.operation >= 0) operations.push_back(head.operation);
  return operations;
}

bool computes(const BoardHead& head) {
  return head.under_way[0] >= 0 ? head.computes.load() : head.call == RankCall::none;
}

std::string place_of(const BoardHead& head, const DescribeOperation& describe) {
  std::string text;
  switch (head.state.load()) {
    case RankState::starting:
      return "before its first step";
    case RankState::unsharded:
      text = "while the network is trained on one rank, to compare with";
      break;
    case RankState::comparing:
      text = "comparing with the network on one rank";
      break;
    default:
      std::string at;
      for (const std::int64_t operation : operations_at(head)) {
        at += (at.empty() ? "" : " and ") + describe(head.rank, operation);
      }
      text = fmt::format("step {}, {}", head.steps_done.load(),
                         at.empty() ? "before its first operation" : at);
  }
  const std::string_view call = name_of(head.call.load());
  return call.empty() ? text : fmt::format("{}, in {}", text, call);
}

std::string sentence_of(const BoardHead& head, std::string_view happened,
                        const DescribeOperation& describe) {
  return fmt::format("rank {} on {} {}: {}", head.rank, head.host.data(), happened,
                     place_of(head, describe));
}

std::string not_gone_on(Seconds timeout) {
  return fmt::format("has not gone on for {:.0f} s", timeout.value());
}

}  // namespace trainyard
