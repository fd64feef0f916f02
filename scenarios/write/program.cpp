#include "scenarios/write/program.h"

#include <string_view>

#include "model/program/flop.h"
#include "model/program/view.h"
#include "scenarios/json/json_document.h"
#include "scenarios/plan_value.h"

namespace trainyard {
namespace {

Json members_json(const GroupMembers& members) {
  Json ranks = Json::array();
  for (int i = 0; i < members.size(); ++i) ranks.push_back(members[i]);
  return ranks;
}

Json groups_json(const Program& program, const RankLayout& layout, int rank) {
  Json groups = Json::object();
  for (const IssuedOperation issued : operations_of(program, layout.coordinates(rank).stage)) {
    const Group group = issued.operation->group;
    const std::string name(name_of(group));
    if (group != Group::none && !groups.contains(name)) {
      groups[name] = members_json(layout.members(group, rank));
    }
  }
  return groups;
}

Json buffers_json(const Program& program, const IssuedOperation& issued, Access access) {
  Json names = Json::array();
  for (const Operand& operand : issued.operation->operands) {
    if (operand.access != access) continue;
    names.push_back(operand_name(program, issued, operand));
  }
  return names;
}

Json freed_json(const Program& program, const IssuedOperation& issued) {
  Json names = Json::array();
  for (const Operand& operand : issued.operation->operands) {
    if (!operand.frees) continue;
    names.push_back(operand_name(program, issued, operand));
  }
  return names;
}

Json or_null(int number) { return number >= 0 ? Json(number) : Json(nullptr); }

Json shape_json(const Operation& operation) {
  if (operation.gemm.m > 0) {
    return {{"m", operation.gemm.m}, {"n", operation.gemm.n}, {"k", operation.gemm.k}};
  }
  const AttentionShape& core = operation.attention;
  if (core.batch == 0) return nullptr;
  return {{"batch", core.batch},
          {"heads", core.heads},
          {"kv_heads", core.kv_heads},
          {"queries", core.queries},
          {"keys", core.keys},
          {"query_head_dim", core.query_head_dim},
          {"value_head_dim", core.value_head_dim}};
}

Json operation_json(const Program& program, const RankLayout& layout, int rank,
                    const IssuedOperation& issued) {
  const Operation& operation = *issued.operation;
  const Tag tag = issued.tag();
  const int peer = issued.call->peer;
  const bool moves = moves_bytes(operation.kind);
  return {
      {"pass", name_of(tag.pass)},
      {"microbatch", tag.microbatch},
      {"chunk", tag.chunk},
      {"layer", or_null(tag.layer)},
      {"operation", name_of(operation.kind)},
      {"operator", operation.part ? Json(name_of(*operation.part)) : Json(nullptr)},
      {"stream", name_of(operation.stream)},
      {"dtype", name_of(operation.dtype)},
      {"shape", shape_json(operation)},
      {"flop", flop_of(operation).value()},
      {"group", operation.group == Group::none ? Json(nullptr) : Json(name_of(operation.group))},
      {"peer_rank", or_null(peer < 0 ? -1 : layout.in_stage(rank, peer))},
      {"message_bytes", moves ? Json(operation.message.value()) : Json(nullptr)},
      {"reads", buffers_json(program, issued, Access::read)},
      {"creates", buffers_json(program, issued, Access::create)},
      {"updates", buffers_json(program, issued, Access::update)},
      {"frees", freed_json(program, issued)}};
}

}  // namespace

// One operation on each line, each written before the next is made: as one JSON value, the
// operations of a long step would take many times the memory of their text.
std::string program_json(const Scenario& scenario, const Plan& plan, const Program& program,
                         const RankLayout& layout, int rank) {
  const RankCoordinates at = layout.coordinates(rank);
  std::string text = text_of(Json{{"trainyard", "program/1"},
                                  {"name", scenario.name},
                                  {"plan", plan_value(plan)},
                                  {"rank", rank},
                                  {"ranks", layout.ranks()},
                                  {"stage", at.stage},
                                  {"tensor_rank", at.tensor},
                                  {"context_rank", at.context},
                                  {"data_rank", at.data},
                                  {"groups", groups_json(program, layout, rank)}});
  text.resize(text.rfind("\n}"));
  text += ",\n  \"operations\": [";
  std::string_view before = "\n    ";
  for (const IssuedOperation issued : operations_of(program, at.stage)) {
    text.append(before).append(json_line(operation_json(program, layout, rank, issued)));
    before = ",\n    ";
  }
  return text.append("\n  ]\n}\n");
}

}  // namespace trainyard
