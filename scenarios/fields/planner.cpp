// The fields of a scenario's `planner` section: what the search may choose, and the sizes of which
// each is searched (planner/findings/capacity.h).
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "model/cluster/fabric_shape.h"
#include "planner/passes/auto_schedule.h"
#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

// One dimension of the search: a value or a list of values.
template <typename Value>
Field<PlannerKeys> dimension(std::string_view key, std::vector<Value> SearchSpace::*member,
                             Shape value, std::string_view doc) {
  Shape list{ListShape{{value}}};
  return Field<PlannerKeys>{
      {.key = std::string(key),
       .shape = {AnyShape{{std::move(value), std::move(list)}}},
       .doc = std::string(doc)},
      [member](const Json& read, PlannerKeys& keys, const Place&) -> Expected<void> {
        if (!read.is_array()) {
          (keys.*member).push_back(read.get<Value>());
        } else {
          for (const Json& entry : read) (keys.*member).push_back(entry.get<Value>());
        }
        return {};
      },
      [member](const PlannerKeys& keys) -> std::optional<Json> {
        if ((keys.*member).empty()) return std::nullopt;
        return Json(keys.*member);
      }};
}

const FieldSpec& key_of_plan(std::string_view key) {
  return *std::ranges::find(plan_section().spec().fields, key, &FieldSpec::key);
}

template <typename Value>
Field<PlannerKeys> dimension_like_plan(std::string_view key,
                                       std::vector<Value> SearchSpace::*member) {
  const FieldSpec& of_plan = key_of_plan(key);
  return dimension(key, member, of_plan.shape, of_plan.doc).absent("every legal value");
}

// All numbers between two bounds, both included.
struct Bounds {
  int from = 0, to = std::numeric_limits<int>::max();
};

const Section<Bounds>& bounds_section() {
  static const Section<Bounds> section(
      "bounds", "Every legal number between two bounds, both included.",
      {
          count("from", &Bounds::from, "least number", {0, 1e6}).absent("no bound"),
          count("to", &Bounds::to, "greatest number", {0, 1e6}).absent("no bound"),
      },
      {.finish = [](Bounds& bounds, const Place& place) -> Expected<void> {
        if (bounds.from <= bounds.to) return {};
        return (place / "to")
            .error(fmt::format("found {}; allowed: at least `from`, {}", bounds.to, bounds.from));
      }});
  return section;
}

// `least`: the least value of the key. Bounds that exclude nothing still count as bounds: they name
// a dimension that is searched only if it is named (SearchSpace::sharding_group).
Expected<void> read_numbers(const Json& value, int least, Numbers& numbers, const Place& place) {
  if (value.is_object()) {
    Bounds bounds;
    if (auto done = bounds_section().read(value, bounds, place); !done) return done;
    if (bounds.to < least) {
      return (place / "to").error(fmt::format("found {}; allowed: at least {}", bounds.to, least));
    }
    numbers = Numbers::between(std::max(least, bounds.from), bounds.to);
    return {};
  }
  const auto add = [&numbers](const Json& entry) {
    numbers.values.push_back(entry.is_string() ? kShardOverAll
                                               : static_cast<int>(entry.get<double>()));
  };
  if (value.is_array()) {
    std::for_each(value.begin(), value.end(), add);
  } else {
    add(value);
  }
  return {};
}

std::optional<Json> write_numbers(const Numbers& numbers) {
  if (numbers.empty()) return std::nullopt;
  if (!numbers.values.empty()) {
    Json values = Json::array();
    for (const int value : numbers.values) {
      values.push_back(value == kShardOverAll ? Json("all") : Json(value));
    }
    return values;
  }
  Json bounds = Json::object();
  const Numbers all;
  if (numbers.least != all.least) bounds["from"] = numbers.least;
  if (numbers.most != all.most) bounds["to"] = numbers.most;
  return bounds;
}

// A dimension that is a number, or one of some names: a value, a list of values or bounds.
Field<PlannerKeys> dimension_like_plan(std::string_view key, Numbers SearchSpace::*member,
                                       const std::vector<std::string>& names = {}) {
  const FieldSpec& of_plan = key_of_plan(key);
  const int least = key == "zero_stage" ? 0 : 1;
  AnyShape one{{of_plan.shape}};
  if (!names.empty()) one.alternatives.push_back({ChoiceShape{names}});
  AnyShape any = one;
  any.alternatives.push_back({ListShape{{names.empty() ? of_plan.shape : Shape{one}}}});
  any.alternatives.push_back({ObjectShape{&spec_of<bounds_section>, {}}});
  return Field<PlannerKeys>{
      {.key = std::string(key), .shape = {std::move(any)}, .doc = of_plan.doc},
      [member, least](const Json& value, PlannerKeys& keys, const Place& place) {
        return read_numbers(value, least, keys.*member, place);
      },
      [member](const PlannerKeys& keys) { return write_numbers(keys.*member); }}
      .absent("every legal value");
}

Expected<void> add_recompute(const Json& value, PlannerKeys& keys, const Place& place) {
  PlanRequest read;
  if (auto done = read_recompute(value, read, place); !done) return done;
  keys.recompute.push_back({read.recompute, std::move(read.recompute_per_stage)});
  return {};
}

Expected<void> read_recomputes(const Json& value, PlannerKeys& keys, const Place& place) {
  if (!value.is_array()) return add_recompute(value, keys, place);
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (auto done = add_recompute(value[i], keys, place / i); !done) return done;
  }
  return {};
}

// A list has several choices; a choice that is itself a list gives the recompute of each stage.
Field<PlannerKeys> recompute_dimension() {
  AnyShape one = std::get<AnyShape>(stage_recompute_shape().form);
  AnyShape choice = one;
  choice.alternatives.push_back(Shape{ListShape{{Shape{one}}}});
  AnyShape any = one;
  any.alternatives.push_back(Shape{ListShape{{Shape{choice}}}});
  return Field<PlannerKeys>{{.key = "recompute",
                             .shape = {any},
                             .doc = "what the backward pass recomputes; a list among the values "
                                    "has one entry a stage, and only as many stages are searched"},
                            read_recomputes,
                            [](const PlannerKeys& keys) -> std::optional<Json> {
                              if (keys.recompute.empty()) return std::nullopt;
                              Json choices = Json::array();
                              for (const RecomputeChoice& one_choice : keys.recompute) {
                                choices.push_back(recompute_value(one_choice));
                              }
                              return choices;
                            }}
      .absent("every legal value, and full recomputation of as few layers as fit");
}

// Only named schedules; orders that are found or listed are no dimension of the search.
Field<PlannerKeys> schedule_dimension() {
  const Shape& shape = key_of_plan("schedule").shape;
  const Shape& name = std::get<AnyShape>(shape.form).alternatives.front();
  ChoiceShape named = std::get<ChoiceShape>(name.form);
  named.document = {};
  std::erase(named.names, kAutoSchedule);
  return dimension("schedule", &SearchSpace::schedule, {std::move(named)},
                   "pipeline schedule, the order of the passes")
      .absent("every one that the stack runs");
}

Field<PlannerKeys> layers_dimension() {
  const FieldSpec& of_plan = key_of_plan("layers_per_stage");
  return {{.key = of_plan.key,
           .shape = of_plan.shape,
           .doc = of_plan.doc + "; only degrees that fit it are searched",
           .absent = of_plan.absent},
          [](const Json& value, PlannerKeys& keys, const Place&) -> Expected<void> {
            keys.layers_per_stage = value.get<std::vector<int>>();
            return {};
          },
          [](const PlannerKeys& keys) -> std::optional<Json> {
            if (keys.layers_per_stage.empty()) return std::nullopt;
            return Json(keys.layers_per_stage);
          }};
}

// Numbers from `from` to `to`, `step` apart.
struct Range {
  std::int64_t from = 0, to = 0, step = 0;

  std::int64_t after(std::int64_t value) const { return step > 0 ? value + step : 2 * value; }
};
constexpr std::size_t kMostSizes = 1000;
constexpr CountShape kSize{.most = 1e8};

const Section<Range>& range_section() {
  static const Section<Range> section(
      "range", "Numbers between two bounds, both included.",
      {
          count("from", &Range::from, "first number", kSize).required(),
          count("to", &Range::to, "last number", kSize).required(),
          count("step", &Range::step, "difference between neighbouring numbers", kSize)
              .absent("each is twice the one before"),
      },
      {.finish = [](Range& range, const Place& place) -> Expected<void> {
        if (range.from <= range.to) return {};
        return (place / "to")
            .error(fmt::format("found {}; allowed: at least `from`, {}", range.to, range.from));
      }});
  return section;
}

Expected<void> add_range(const Json& value, std::vector<std::int64_t>& sizes, const Place& place) {
  Range range;
  if (auto done = range_section().read(value, range, place); !done) return done;
  for (std::int64_t size = range.from; size < range.to; size = range.after(size)) {
    sizes.push_back(size);
    if (sizes.size() >= kMostSizes) {
      return place.error(
          fmt::format("found more than {} numbers; allowed: a larger `step`", kMostSizes));
    }
  }
  sizes.push_back(range.to);
  return {};
}

// Each size is one row, so repeated sizes count once.
Field<PlannerKeys> sizes(std::string_view key, std::vector<std::int64_t> CapacitySpace::*member,
                         CountShape size, std::string_view doc) {
  return Field<PlannerKeys>{
      {.key = std::string(key),
       .shape = {AnyShape{
           {Shape{ListShape{{Shape{size}}}}, Shape{ObjectShape{&spec_of<range_section>, {}}}}}},
       .doc = std::string(doc)},
      [member](const Json& value, PlannerKeys& keys, const Place& place) -> Expected<void> {
        if (value.is_object()) return add_range(value, keys.*member, place);
        for (const Json& entry : value) {
          const auto asked = static_cast<std::int64_t>(entry.get<double>());
          const bool known = std::ranges::find(keys.*member, asked) != (keys.*member).end();
          if (!known) (keys.*member).push_back(asked);
        }
        return {};
      },
      [member](const PlannerKeys& keys) -> std::optional<Json> {
        if ((keys.*member).empty()) return std::nullopt;
        return Json(keys.*member);
      }}
      .absent("as the job has it");
}

Field<PlannerKeys> models_field() {
  return {{.key = "model",
           .shape = {ListShape{{model_field().spec.shape}}},
           .doc = "networks that are planned one by one, to find the largest that fits",
           .absent = "the scenario's own"},
          [](const Json& value, PlannerKeys& keys, const Place& place) -> Expected<void> {
            for (std::size_t i = 0; i < value.size(); ++i) {
              const auto here = value.begin() + static_cast<std::ptrdiff_t>(i);
              if (std::find(value.begin(), here, *here) != here) continue;
              Scenario other;
              auto done = model_field().read(value[i], other, place / i);
              if (!done) return done;
              keys.models.push_back(std::move(other.job.model));
            }
            return {};
          },
          [](const PlannerKeys&) { return std::nullopt; }};
}

// Checks that clusters of these sizes are possible.
Expected<void> check_nodes(const Cluster& cluster, const std::vector<std::int64_t>& nodes,
                           const Place& planner) {
  const Place place = planner / "nodes";
  for (const std::int64_t size : nodes) {
    Cluster sized = cluster;
    sized.nodes = static_cast<int>(size);
    if (auto done = check_size(sized, planner); !done) return done;
    if (size > 1 && cluster.inter.kind == InterNodeKind::none) {
      return place.error(
          fmt::format("found {} without an \"inter_node\" of the cluster; allowed: 1", size));
    }
    if (const auto checked = check_fabric(sized); !checked) {
      return place.error(fmt::format("found {}: {}", size, checked.error().message));
    }
  }
  return {};
}

// The first key that asks for sizes, where one does.
std::string_view first_size(const PlannerKeys& keys) {
  if (!keys.models.empty()) return "model";
  if (!keys.nodes.empty()) return "nodes";
  if (!keys.global_batch.empty()) return "global_batch";
  return keys.sequence_length.empty() ? "deadline" : "sequence_length";
}

}  // namespace

const Section<PlannerKeys>& planner_section() {
  using S = SearchSpace;
  using C = CapacitySpace;
  static const Section<PlannerKeys> section(
      "planner",
      "What the planner may choose: for a key of `plan` a value, a list of values or, for numbers, "
      "bounds. Also sizes of the job, for each of which `trainyard plan` finds the best plan.",
      {
          dimension_like_plan("tensor_parallel", &S::tensor_parallel),
          dimension_like_plan("sequence_parallel", &S::sequence_parallel)
              .absent("as the stack has it, and without"),
          dimension_like_plan("context_parallel", &S::context_parallel),
          dimension_like_plan("context_parallel_algorithm", &S::context_parallel_algorithm),
          dimension_like_plan("pipeline_parallel", &S::pipeline_parallel),
          dimension_like_plan("virtual_stages", &S::virtual_stages),
          dimension_like_plan("data_parallel", &S::data_parallel),
          dimension_like_plan("expert_parallel", &S::expert_parallel),
          dimension_like_plan("expert_tensor_parallel", &S::expert_tensor_parallel),
          dimension_like_plan("micro_batch", &S::micro_batch),
          dimension_like_plan("zero_stage", &S::zero_stage),
          dimension_like_plan("sharding_group", &S::sharding_group, {"all"})
              .absent("all ranks that hold the same parameters and, where the stack can, every "
                      "number that divides them"),
          recompute_dimension(),
          dimension(
              "offload", &S::offload,
              {ChoiceShape{{"none", "optimizer", "activations", "states", "all"}}},
              "what may be kept in host memory; states: parameters, gradients and optimizer state")
              .absent("as the plan has it, else all that the stack can offload"),
          schedule_dimension(),
          layers_dimension(),
          dimension_like_plan("rank_order", &S::rank_order)
              .absent("as the plan has it, else those that the stack can run"),
          dimension_like_plan("collective", &S::collective)
              .absent("the fastest that libraries run, as in `plan`"),
          models_field(),
          sizes("nodes", &C::nodes, {.most = 1e6},
                "numbers of nodes of the cluster, for each of which a plan is sought"),
          sizes("global_batch", &C::global_batch, kSize,
                "global batches, in sequences per step, for each of which a plan is sought"),
          sizes("sequence_length", &C::sequence_length, kSize,
                "sequence lengths, in tokens, for each of which a plan is sought"),
          quantity("deadline", static_cast<std::optional<Seconds> PlannerKeys::*>(&C::deadline),
                   "time in which `training.tokens` must be trained: the fewest devices, the "
                   "largest network and the longest sequence that meet it are named")
              .absent("none"),
      });
  return section;
}

Expected<void> check_sizes(const Scenario& scenario, const Place& place) {
  const PlannerKeys& keys = scenario.space;
  const Place planner = place / "planner";
  if (!asks_for_sizes(keys)) return {};
  if (scenario.unlike) {
    return (planner / first_size(keys))
        .error(
            "found with groups of unlike nodes; allowed: with one kind of node, or a sweep over "
            "the keys of the groups");
  }
  if (keys.deadline && scenario.job.training.tokens <= 0) {
    return (planner / "deadline").error("found without /training/tokens; allowed: with them");
  }
  if (count_of(keys) > static_cast<std::int64_t>(kMostSizes)) {
    return planner.error(
        fmt::format("found {} sizes in all; allowed: at most {}", count_of(keys), kMostSizes));
  }
  return check_nodes(scenario.job.cluster, keys.nodes, planner);
}

}  // namespace trainyard
