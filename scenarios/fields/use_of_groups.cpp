// The fields of `use_of_groups`: which groups of unlike nodes take the stages or the replicas of a
// plan. price_grouped checks that the plan is legal for them.
#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

using Use = Named<GroupUse>;
constexpr std::array kUses = {Use{"pipeline", GroupUse::pipeline},
                              Use{"replicas", GroupUse::replicas},
                              Use{"together", GroupUse::together}};

template <typename N>
Field<GroupedRequest> numbers(std::string_view key, std::vector<N> GroupedRequest::*member,
                              CountShape range, std::string_view doc) {
  return {{.key = std::string(key),
           .shape = {ListShape{{Shape{range}}, 2, kMostGroups}},
           .doc = std::string(doc)},
          [member](const Json& value, GroupedRequest& request, const Place&) -> Expected<void> {
            for (const Json& entry : value) {
              (request.*member).push_back(static_cast<N>(entry.get<double>()));
            }
            return {};
          },
          [member](const GroupedRequest& request) -> std::optional<Json> {
            if ((request.*member).empty()) return std::nullopt;
            return Json(request.*member);
          }};
}

Field<GroupedRequest> recompute_of_groups() {
  AnyShape one = std::get<AnyShape>(stage_recompute_shape().form);
  one.alternatives.push_back(Shape{ListShape{{stage_recompute_shape()}}});
  return {{.key = "recompute",
           .shape = {ListShape{{Shape{one}}, 2, kMostGroups}},
           .doc = "replicas only: what those of each group of `order` recompute; a list among them "
                  "has one entry a stage",
           .absent = "as the plan has it"},
          [](const Json& value, GroupedRequest& request, const Place& place) -> Expected<void> {
            for (std::size_t i = 0; i < value.size(); ++i) {
              PlanRequest read;
              if (auto done = read_recompute(value[i], read, place / i); !done) return done;
              request.recompute.push_back({read.recompute, std::move(read.recompute_per_stage)});
            }
            return {};
          },
          [](const GroupedRequest& request) -> std::optional<Json> {
            if (request.recompute.empty()) return std::nullopt;
            Json groups = Json::array();
            for (const RecomputeChoice& choice : request.recompute) {
              groups.push_back(recompute_value(choice));
            }
            return groups;
          }};
}

}  // namespace

Json recompute_value(const RecomputeChoice& choice) {
  PlanRequest plan;
  plan.recompute = choice.every_stage;
  plan.recompute_per_stage = choice.per_stage;
  return recompute_value(plan);
}

const Section<GroupedRequest>& use_of_groups_section() {
  using G = GroupedRequest;
  static const Section<G> section(
      "use_of_groups", "Which groups of unlike nodes take the stages or the replicas of a plan.",
      {
          choice("use", &G::use, kUses,
                 "how groups share the plan: pipeline: each has as many stages as its devices "
                 "fill; replicas: each holds replicas of the whole network; together: all as one "
                 "cluster of the slowest"),
          numbers("order", &G::order, {.least = 0, .most = kMostGroups - 1},
                  "groups at work, numbered from 0; of a pipeline in the order of its stages")
              .required(),
          numbers("micro_batches", &G::microbatches, {.most = 1e8},
                  "replicas only: micro-batches of each replica of each group of `order`, which "
                  "together are the batch")
              .absent("allowed unless `use` is replicas"),
          recompute_of_groups(),
      });
  return section;
}

}  // namespace trainyard
