#include "planner/findings/refusal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "model/cluster/fabric_shape.h"
#include "planner/search/enumeration.h"
#include "planner/search/node.h"

namespace trainyard {
namespace {

// ---- Some legal plan ------------------------------------------------------------------

// How many requests are tried: where more would be needed, a search has found that none is legal.
constexpr int kMostTried = 1 << 18;

// Tries the requests of a space one after the other, until one of them is legal.
class LegalRequest {
 public:
  LegalRequest(const PreparedJob& job, const SearchSpace& space, const PlanRequest& base)
      : job_(job.job), all_(enumerate(job, space, base)), request_(base) {}

  std::optional<PlanRequest> find() {
    for (const Degrees& degrees : all_.degrees) {
      set_degrees(all_, degrees, request_);
      if (is_legal_with(degrees)) return request_;
      if (tried_ > kMostTried) break;
    }
    return std::nullopt;
  }

 private:
  bool is_legal_with(const Degrees& degrees) {
    const std::vector<Sharding>& shardings = all_.shardings[degrees.shardings];
    return std::ranges::any_of(all_.shapes[degrees.shapes], [&](const StepShape& shape) {
      set_shape(shape, request_);
      return std::ranges::any_of(shardings, [&](const Sharding& sharding) {
        set_sharding(sharding, request_);
        return is_legal_on(degrees.pipeline);
      });
    });
  }

  bool is_legal_on(int stages) {
    return std::ranges::any_of(all_.recomputes, [&](const RecomputeChoice& choice) {
      if (!choice.is_for(stages)) return false;
      set_recompute(choice, request_);
      ++tried_;
      return plan_if_legal(request_, job_.model, job_.cluster, job_.training).has_value();
    });
  }

  const Job& job_;
  Enumeration all_;
  PlanRequest request_;
  int tried_ = 0;
};

struct Space {
  SearchSpace named;
  PlanRequest base;
};

std::optional<PlanRequest> legal_request(const PreparedJob& job, const Space& space) {
  return LegalRequest(job, space.named, space.base).find();
}

// ---- Keys of a space ------------------------------------------------------------------

struct Key {
  std::string_view name;
  bool (*named)(const Space& space);
  void (*move)(Space& from, Space& to);
};

template <auto Member>
constexpr Key key_of(std::string_view name) {
  return {name, [](const Space& space) { return !(space.named.*Member).empty(); },
          [](Space& from, Space& to) { to.named.*Member = std::exchange(from.named.*Member, {}); }};
}

// The keys of a space, in the order in which they are blamed.
constexpr std::array kKeys = {
    key_of<&SearchSpace::schedule>("schedule"),
    key_of<&SearchSpace::virtual_stages>("virtual_stages"),
    Key{"layers_per_stage", [](const Space& space) { return !space.base.layers_per_stage.empty(); },
        [](Space& from, Space& to) {
          to.base.layers_per_stage = std::exchange(from.base.layers_per_stage, {});
        }},
    key_of<&SearchSpace::recompute>("recompute"),
    key_of<&SearchSpace::sharding_group>("sharding_group"),  // every stage is legal without one
    key_of<&SearchSpace::zero_stage>("zero_stage"),
    key_of<&SearchSpace::micro_batch>("micro_batch"),
    key_of<&SearchSpace::expert_tensor_parallel>("expert_tensor_parallel"),
    key_of<&SearchSpace::expert_parallel>("expert_parallel"),
    key_of<&SearchSpace::data_parallel>("data_parallel"),
    key_of<&SearchSpace::pipeline_parallel>("pipeline_parallel"),
    key_of<&SearchSpace::context_parallel>("context_parallel"),
    key_of<&SearchSpace::tensor_parallel>("tensor_parallel"),
    key_of<&SearchSpace::sequence_parallel>("sequence_parallel"),
    key_of<&SearchSpace::context_parallel_algorithm>("context_parallel_algorithm"),
    key_of<&SearchSpace::rank_order>("rank_order"),
    key_of<&SearchSpace::offload>("offload")};

// A key whose values are numbers: how to set one in a request, and which numbers may be legal.
struct NumberKey {
  std::string_view name;
  Numbers SearchSpace::*values;
  void (*set)(PlanRequest& request, int value);
  std::vector<int> (*candidates)(const Job& job);
};

std::vector<int> of_devices(const Job& job) { return divisors(job.cluster.devices()); }
std::vector<int> of_batch(const Job& job) { return divisors(job.training.global_batch); }
std::vector<int> of_layers(const Job& job) {
  std::vector<int> counts(static_cast<std::size_t>(job.model.layers) + 2);
  std::iota(counts.begin(), counts.end(), 1);
  return counts;
}

template <auto Member>
void set(PlanRequest& request, int value) {
  request.*Member = value;
}

using S = SearchSpace;
using R = PlanRequest;
constexpr std::array kNumberKeys = {
    NumberKey{"virtual_stages", &S::virtual_stages, set<&R::virtual_stages>, of_layers},
    NumberKey{"zero_stage", &S::zero_stage, set<&R::zero_stage>,
              [](const Job&) {
                return std::vector<int>{0, 1, 2, 3};
              }},
    NumberKey{"micro_batch", &S::micro_batch, set<&R::micro_batch>, of_batch},
    NumberKey{"sharding_group", &S::sharding_group, set<&R::sharding_group>, of_devices},
    NumberKey{"expert_tensor_parallel", &S::expert_tensor_parallel, set<&R::expert_tensor_parallel>,
              of_devices},
    NumberKey{"expert_parallel", &S::expert_parallel, set<&R::expert_parallel>, of_devices},
    NumberKey{"data_parallel", &S::data_parallel, set<&R::data_parallel>, of_devices},
    NumberKey{"pipeline_parallel", &S::pipeline_parallel, set<&R::pipeline_parallel>, of_devices},
    NumberKey{"context_parallel", &S::context_parallel, set<&R::context_parallel>, of_devices},
    NumberKey{"tensor_parallel", &S::tensor_parallel, set<&R::tensor_parallel>, of_devices}};

const NumberKey* number_key(std::string_view name) {
  const auto* key = std::ranges::find(kNumberKeys, name, &NumberKey::name);
  return key == kNumberKeys.end() ? nullptr : key;
}

// ---- What is refused of a key ---------------------------------------------------------

int first_of(const Numbers& numbers) {
  return numbers.values.empty() ? numbers.least : numbers.values.front();
}

std::string words_of(const Numbers& numbers) {
  if (!numbers.values.empty()) return fmt::format("{}", fmt::join(numbers.values, ", "));
  if (numbers.least == numbers.most) return fmt::format("{}", numbers.least);
  if (numbers.most == Numbers().most) return fmt::format("{} and more", numbers.least);
  return fmt::format("{} to {}", numbers.least, numbers.most);
}

// The refusal of a request that is legal but for this key or one in it, without the nearest value,
// which holds for the other keys of this request only. Empty: it is legal, or another key is
// refused.
std::string refused(const Job& job, const PlanRequest& request, std::string_view key) {
  const auto plan = make_plan(request, job.model, job.cluster, job.training);
  if (plan) return "";
  const std::string pointer = fmt::format("/plan/{}", key);
  if (plan.error().where != pointer && !plan.error().where.starts_with(pointer + "/")) return "";
  const std::string& message = plan.error().message;
  return message.substr(0, message.find("; nearest"));
}

std::string refused_number(const Job& job, const NumberKey& key, PlanRequest request, int value) {
  const std::string_view name = key.name;
  if (name == "virtual_stages") return "";  // the rule is that of one number of stages
  if (name == "micro_batch") {
    return fmt::format("found {}, allowed a divisor of a replica's share of the {} sequences",
                       value, job.training.global_batch);
  }
  if (name == "data_parallel" && job.training.global_batch % value != 0) {
    return fmt::format("found {}, allowed a divisor of the {} sequences of a step", value,
                       job.training.global_batch);
  }
  key.set(request, value);
  if (name != "data_parallel") request.data_parallel.reset();
  return refused(job, request, name);
}

// The refusal of the key's value where only one is named; else all that is named. The nearest value
// of which some plan is legal is added, where there is one.
std::string refused_numbers(const PreparedJob& job, const NumberKey& key, const Space& rest,
                            const Numbers& named, const PlanRequest& legal) {
  const Numbers one = Numbers{first_of(named)};
  const bool single = named == one || named == Numbers::between(first_of(named), first_of(named));
  std::string words = single ? refused_number(job.job, key, legal, first_of(named)) : "";
  if (words.empty()) {
    words = fmt::format("found {}, of which no plan is legal", words_of(named));
  }
  std::vector<int> candidates = key.candidates(job.job);
  std::ranges::stable_sort(candidates, {},
                           [&](int value) { return std::abs(value - first_of(named)); });
  for (const int value : candidates) {
    if (named.has(value)) continue;
    Space other = rest;
    other.named.*key.values = {value};
    if (legal_request(job, other)) return fmt::format("{}; nearest {}", words, value);
  }
  return words;
}

// Whether the stack runs none of these schedules with a pipeline. Without one it runs them all.
bool runs_none(const Job& job, const std::vector<std::string>& schedules) {
  const std::vector<std::string>& known = job.training.stack.schedules;
  return !known.empty() && !schedules.empty() &&
         std::ranges::none_of(schedules, [&](const std::string& schedule) {
           return std::ranges::find(known, schedule) != known.end();
         });
}

// A key whose values are no numbers: its values in words, and how to set one in a request.
struct ValueKey {
  std::string_view name;
  std::vector<std::string> (*words)(const Space& space);
  void (*set)(const Space& space, std::size_t value, PlanRequest& request);
};

std::string words_of(const Recompute& recompute) {
  const std::string_view name = name_of(recompute.mode);
  return recompute.full_layers == 0 ? std::string(name)
                                    : fmt::format("{} {}", name, recompute.full_layers);
}

std::vector<std::string> words_of_recomputes(const Space& space) {
  std::vector<std::string> words;
  for (const RecomputeChoice& choice : space.named.recompute) {
    std::vector<std::string> stages;
    for (const Recompute& stage : choice.per_stage) stages.push_back(words_of(stage));
    words.push_back(stages.empty() ? words_of(choice.every_stage)
                                   : fmt::format("[{}]", fmt::join(stages, ", ")));
  }
  return words;
}

void set_offload(const Space& space, std::size_t value, PlanRequest& request) {
  const auto* choice =
      std::ranges::find(kOffloads, space.named.offload[value], &OffloadChoice::name);
  if (choice != kOffloads.end()) request.offload = choice->offload;
}

std::vector<std::string> words_of_sequence_parallel(const Space& space) {
  std::vector<std::string> words;
  for (const bool value : space.named.sequence_parallel)
    words.emplace_back(value ? "true" : "false");
  return words;
}

template <auto Member>
std::vector<std::string> words_of_names(const Space& space) {
  return space.named.*Member;
}

constexpr std::array kValueKeys = {
    ValueKey{"recompute", words_of_recomputes,
             [](const Space& space, std::size_t value, PlanRequest& request) {
               set_recompute(space.named.recompute[value], request);
             }},
    ValueKey{"offload", words_of_names<&S::offload>, set_offload},
    ValueKey{"rank_order", words_of_names<&S::rank_order>,
             [](const Space& space, std::size_t value, PlanRequest& request) {
               request.rank_order = space.named.rank_order[value];
             }},
    ValueKey{"sequence_parallel", words_of_sequence_parallel,
             [](const Space& space, std::size_t value, PlanRequest& request) {
               request.sequence_parallel = space.named.sequence_parallel[value];
             }},
    ValueKey{"schedule", words_of_names<&S::schedule>,
             [](const Space& space, std::size_t value, PlanRequest& request) {
               request.schedule = space.named.schedule[value];
               request.virtual_stages.reset();
             }},
};

// The refusal of all values of the key, with its rule where that is the same for all.
std::string refused_values(const Job& job, const ValueKey& key, const Space& named,
                           const PlanRequest& legal) {
  const std::vector<std::string> words = key.words(named);
  std::vector<std::string> rules;
  for (std::size_t i = 0; i < words.size(); ++i) {
    PlanRequest request = legal;
    key.set(named, i, request);
    const std::string refusal = refused(job, request, key.name);
    const std::size_t rule = refusal.find(", ");
    rules.push_back(rule == std::string::npos ? "" : refusal.substr(rule));
  }
  const bool alike = std::ranges::adjacent_find(rules, std::not_equal_to<>()) == rules.end();
  return fmt::format(
      "found {}{}", fmt::join(words, ", "),
      alike && !rules.front().empty() ? rules.front() : ", of which no plan is legal");
}

// Only Ulysses can be refused: it shares the attention heads out over the ranks.
std::string refused_algorithms(const Job& job, const Space& named, const PlanRequest& legal) {
  return fmt::format(
      "found {}, allowed ring, all-gather: context_parallel {} does not divide the {} attention "
      "heads of a tensor-parallel rank",
      fmt::join(named.named.context_parallel_algorithm, ", "), legal.context_parallel,
      job.model.attention_heads / legal.tensor_parallel);
}

// The refusal of named layers: where a number of stages is named, that of the rules, which is about
// this number.
std::string refused_layers(const Job& job, const Space& rest, const Space& named,
                           PlanRequest request) {
  const std::vector<int>& layers = named.base.layers_per_stage;
  request.layers_per_stage = layers;
  request.virtual_stages.reset();
  std::string rule =
      rest.named.pipeline_parallel.empty() ? "" : refused(job, request, "layers_per_stage");
  if (!rule.empty()) return rule;
  return fmt::format(
      "found {} entries, allowed as many as the stages or chunks of a pipeline that {} devices can "
      "have",
      layers.size(), job.cluster.devices());
}

std::string refused_key(const PreparedJob& job, const Key& key, const Space& rest,
                        const Space& named, const PlanRequest& legal) {
  if (const NumberKey* number = number_key(key.name)) {
    return refused_numbers(job, *number, rest, named.named.*number->values, legal);
  }
  if (key.name == "layers_per_stage") return refused_layers(job.job, rest, named, legal);
  if (key.name == "context_parallel_algorithm") return refused_algorithms(job.job, named, legal);
  const auto* value = std::ranges::find(kValueKeys, key.name, &ValueKey::name);
  return value == kValueKeys.end() ? "no plan is legal with what it allows"
                                   : refused_values(job.job, *value, named, legal);
}

// ---- Whom to blame --------------------------------------------------------------------

// The keys that the space names, in the order in which they are blamed: `schedule` first where the
// stack runs none of the named ones, then the suspects.
std::vector<Key> keys_of(const Job& job, const Space& space,
                         const std::vector<std::string>& suspects) {
  std::vector<Key> keys;
  const auto add = [&](const Key& key) {
    if (key.named(space) && std::ranges::find(keys, key.name, &Key::name) == keys.end()) {
      keys.push_back(key);
    }
  };
  if (runs_none(job, space.named.schedule)) add(kKeys.front());
  for (const std::string& name : suspects) {
    const auto* key = std::ranges::find(kKeys, name, &Key::name);
    if (key != kKeys.end()) add(*key);
  }
  std::ranges::for_each(kKeys, add);
  return keys;
}

Space naming_none(const Space& space) {
  Space none{{}, space.base};
  none.base.layers_per_stage.clear();
  return none;
}

std::optional<Error> refused_beside(const PreparedJob& job, const Key& key, const Space& named,
                                    const Space& rest) {
  const auto legal = legal_request(job, rest);
  if (!legal) return std::nullopt;
  return Error{fmt::format("/planner/{}", key.name), refused_key(job, key, rest, named, *legal)};
}

// The refusal of a key if no plan is legal with it alone named; or, where not `alone`, if one is
// legal once this key is left out.
std::optional<Error> refused_of(const PreparedJob& job, const Space& space, const Key& key,
                                bool alone) {
  Space rest = space, named = naming_none(space);
  key.move(rest, named);
  if (!alone) return refused_beside(job, key, named, rest);
  if (legal_request(job, named)) return std::nullopt;
  return refused_beside(job, key, named, naming_none(space));
}

// Where leaving out any single key is not enough: adds the keys one after the other, beginning with
// those that are blamed last, and refuses the first with which no plan is legal.
std::optional<Error> refused_in_turn(const PreparedJob& job, const Space& space,
                                     const std::vector<Key>& keys) {
  Space left = space, before = naming_none(space);
  for (const Key& key : std::vector<Key>(keys.rbegin(), keys.rend())) {
    Space with = before, all = space, named = naming_none(space);
    key.move(left, with);
    key.move(all, named);
    if (!legal_request(job, with)) return refused_beside(job, key, named, before);
    before = with;
  }
  return std::nullopt;
}

// ---- What no plan of the job can have -------------------------------------------------

// The nearest batch with which some plan is legal, of the batches that some number of replicas
// shares evenly.
std::optional<std::int64_t> nearest_batch(const Job& job, const PlanRequest& base) {
  const std::int64_t found = job.training.global_batch;
  std::vector<std::int64_t> batches;
  for (const int replicas : divisors(job.cluster.devices())) {
    const std::int64_t below = found - found % replicas;
    if (below > 0) batches.push_back(below);
    batches.push_back(below + replicas);
  }
  std::ranges::sort(batches, {}, [&](std::int64_t batch) { return std::abs(batch - found); });
  for (const std::int64_t batch : batches) {
    Job other = job;
    other.training.global_batch = batch;
    if (legal_request(prepare(std::move(other)), {{}, base})) return batch;
  }
  return std::nullopt;
}

// The largest smaller number of nodes on which some plan is legal with this batch.
std::optional<int> fewer_nodes_of(const Job& job, const PlanRequest& base) {
  for (int nodes = job.cluster.nodes - 1; nodes > 0; --nodes) {
    Job fewer = job;
    fewer.cluster.nodes = nodes;
    if (check_fabric(fewer.cluster) && legal_request(prepare(std::move(fewer)), {{}, base})) {
      return nodes;
    }
  }
  return std::nullopt;
}

std::optional<Error> refused_of_job(const Job& job, const PlanRequest& base) {
  Job even = job;  // as many sequences as there are replicas of one device each
  even.training.global_batch = job.cluster.devices();
  const auto plain = make_plan(base, even.model, even.cluster, even.training);
  if (!plain) return plain.error();
  const auto batch = nearest_batch(job, base);
  if (!batch) return std::nullopt;
  const auto nodes = fewer_nodes_of(job, base);
  return Error{
      "/training/global_batch",
      fmt::format("found {}, which no number of replicas that {} devices can hold shares "
                  "evenly; nearest {}{}",
                  job.training.global_batch, job.cluster.devices(), *batch,
                  nodes ? fmt::format(", or {} of the {} nodes", *nodes, job.cluster.nodes) : "")};
}

}  // namespace

std::optional<Error> why_none_is_legal(const PreparedJob& job, const SearchSpace& space,
                                       const PlanRequest& base,
                                       const std::vector<std::string>& suspects) {
  const Space all{space, base};
  if (legal_request(job, all)) return std::nullopt;
  const Space none = naming_none(all);
  if (!legal_request(job, none)) return refused_of_job(job.job, none.base);
  const std::vector<Key> keys = keys_of(job.job, all, suspects);
  for (const bool alone : {true, false}) {
    for (const Key& key : keys) {
      if (auto found = refused_of(job, all, key, alone)) return found;
    }
  }
  return refused_in_turn(job, all, keys);
}

std::string none_is_legal(const PreparedJob& job, const SearchSpace& space,
                          const PlanRequest& base) {
  return none_is_legal(why_none_is_legal(job, space, base));
}

std::string none_is_legal(const std::optional<Error>& why) {
  const std::string none = "no plan of the space is legal for this job";
  return why ? fmt::format("{}; {}: {}", none, why->where, why->message) : none;
}

}  // namespace trainyard
