#include "scenarios/interchange/scenario_draft.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/catalog.h"
#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/scenario.h"

namespace trainyard {
namespace {

constexpr std::string_view kDefaultNode = "dgx-h100-80gb";
constexpr std::int64_t kDefaultSequence = 4096;

// The fewest nodes for the run's devices, or else for the plan's degrees.
int fewest_nodes(const ScenarioDraft& draft, int devices_per_node) {
  const PlanRequest& plan = draft.plan;
  std::int64_t devices = draft.devices;
  if (devices == 0) {
    devices = ranks_of({model_ranks_of(plan), plan.data_parallel.value_or(1)});
  }
  const std::int64_t nodes = (devices + devices_per_node - 1) / devices_per_node;
  return static_cast<int>(std::clamp<std::int64_t>(nodes, 1, 1'000'000));
}

std::string node_of(const ImportSettings& settings) {
  return settings.node.empty() ? std::string(kDefaultNode) : settings.node;
}

// How many devices of a node the run uses.
int used_of_node(const ScenarioDraft& draft, const ImportSettings& settings, int of_node) {
  const bool fewer = draft.devices_per_node > 0 && draft.devices_per_node < of_node;
  return fewer && find_in_catalog("node", node_of(settings)) ? draft.devices_per_node : of_node;
}

// The node for the document: by its name, or the catalog's with fewer devices.
Json used_node(const std::string& name, int used, int of_node) {
  const CatalogEntry* const entry = find_in_catalog("node", name);
  auto node = entry != nullptr && used < of_node ? parse_json(entry->text) : Json(name);
  if (!node || !node->is_object()) return Json(name);
  node->erase("trainyard");
  (*node)["name"] = fmt::format("{} of {}", used, name);
  (*node)["devices"] = used;
  return *std::move(node);
}

Json cluster_of(ScenarioDraft& draft, const ImportSettings& settings, int of_node) {
  const std::string name = node_of(settings);
  const int used = used_of_node(draft, settings, of_node);
  const int nodes = settings.nodes > 0 ? settings.nodes : fewest_nodes(draft, used);
  if (settings.node.empty()) {
    draft.assumptions.push_back(fmt::format("nodes {}: the file names no machine (--node)", name));
  }
  if (used < of_node) {
    draft.assumptions.push_back(fmt::format(
        "{} of the {} devices of a node: as many as the file starts on it", used, of_node));
  }
  if (settings.nodes == 0) {
    draft.assumptions.push_back(fmt::format(
        "{} node{}: {} (--nodes)", nodes, nodes == 1 ? "" : "s",
        draft.devices > 0 ? "what the file launches" : "the fewest that its degrees fill"));
  }
  return Json{{"node", used_node(name, used, of_node)}, {"nodes", nodes}};
}

void add_batch(ScenarioDraft& draft, int devices) {
  if (draft.training.contains("global_batch")) return;
  const PlanRequest& plan = draft.plan;
  const int model_ranks = model_ranks_of(plan);
  const int replicas = plan.data_parallel.value_or(std::max(1, devices / model_ranks));
  const int accumulation = std::max(1, draft.accumulation);
  const std::int64_t batch = std::int64_t{replicas} * plan.micro_batch * accumulation;
  draft.training["global_batch"] = batch;
  draft.assumptions.push_back(
      fmt::format("global_batch {}: micro-batch {} · {} accumulated · {} replicas", batch,
                  plan.micro_batch, accumulation, replicas));
}

Json document_of(const ScenarioDraft& draft, const Json& cluster) {
  Json plan = plan_section().write(draft.plan, Keys::said);
  return Json{{"trainyard", "scenario/1"}, {"name", draft.name},         {"model", draft.model},
              {"cluster", cluster},        {"training", draft.training}, {"plan", std::move(plan)}};
}

void add_network(ScenarioDraft& draft, const ImportSettings& settings) {
  if (!settings.model.empty()) {
    draft.model = settings.model;
  } else if (draft.model.is_null()) {
    draft.model = std::string(kDefaultModel);
    draft.assumptions.push_back(
        fmt::format("model {}: the file names none (--model)", kDefaultModel));
  }
  if (settings.sequence_length > 0) draft.training["sequence_length"] = settings.sequence_length;
  if (draft.training.contains("sequence_length")) return;
  draft.training["sequence_length"] = kDefaultSequence;
  draft.assumptions.push_back(
      fmt::format("sequence_length {}: the file names none (--sequence)", kDefaultSequence));
}

std::string summary_of(const Scenario& scenario, const Plan& plan) {
  std::string degrees;
  const auto add = [&](std::string_view name, int degree) {
    if (degree > 1) degrees += fmt::format(" {}{}", name, degree);
  };
  add("TP", plan.tensor_parallel);
  add("CP", plan.context_parallel);
  add("PP", plan.pipeline_parallel);
  add("VP", plan.virtual_stages);
  add("DP", plan.data_parallel);
  add("EP", plan.expert_parallel);
  add("ETP", plan.expert_tensor_parallel);
  return fmt::format("{} on {} devices:{} · ZeRO-{} · batch {}, micro-batch {} · {} tokens",
                     scenario.job.model.name.empty() ? "the network" : scenario.job.model.name,
                     scenario.job.cluster.devices(), degrees.empty() ? " one rank" : degrees,
                     plan.zero_stage, scenario.job.training.global_batch, plan.micro_batch,
                     scenario.job.training.sequence_length);
}

// Whether an entry of a list of keys means the option. One that ends in a separator means all names
// that begin with it.
bool means_option(std::string_view key, std::string_view name) {
  return key.ends_with('.') || key.ends_with('_') ? name.starts_with(key) : name == key;
}

bool begins_with_one_of(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::int64_t product_up_to(std::int64_t most, std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    product = factor > 0 && product > most / factor ? most : product * factor;
  }
  return product;
}

int ranks_of(std::initializer_list<std::int64_t> degrees) {
  constexpr std::int64_t kMostRanks = 1'000'000'000;
  return static_cast<int>(product_up_to(kMostRanks, degrees));
}

int model_ranks_of(const PlanRequest& plan) {
  return ranks_of({plan.tensor_parallel, plan.context_parallel, plan.pipeline_parallel});
}

Expected<int> devices_of_node(const ImportSettings& settings) {
  const Document asked{"--node", std::filesystem::current_path() / "-", nullptr};
  Node read;
  if (auto done = read_reference(node_section(), Json(node_of(settings)), read, {&asked, ""});
      !done) {
    return tl::unexpected(done.error());
  }
  return read.devices;
}

Expected<int> planned_devices(const ScenarioDraft& draft, const ImportSettings& settings) {
  return devices_of_node(settings).map([&](int of_node) {
    const int used = used_of_node(draft, settings, of_node);
    return ranks_of({used, settings.nodes > 0 ? settings.nodes : fewest_nodes(draft, used)});
  });
}

Expected<Imported> finish_draft(ScenarioDraft draft, const ImportSettings& settings,
                                const std::string& file) {
  add_network(draft, settings);
  const auto of_node = devices_of_node(settings);
  if (!of_node) return tl::unexpected(of_node.error());
  const Json cluster = cluster_of(draft, settings, *of_node);
  add_batch(draft,
            ranks_of({cluster["nodes"].get<int>(), used_of_node(draft, settings, *of_node)}));
  const std::string text = text_of(document_of(draft, cluster));
  const auto scenario = parse_scenario(text, file);
  if (!scenario) return tl::unexpected(scenario.error());
  const Job& job = scenario->job;
  const auto plan = make_plan(*scenario->plan, job.model, job.cluster, job.training);
  if (!plan) {
    return failure(fmt::format("{}: {}", file, plan.error().where), plan.error().message);
  }
  return Imported{text, summary_of(*scenario, *plan), std::move(draft.assumptions),
                  std::move(draft.ignored)};
}

std::vector<int> unless_default(std::vector<int> layers, int all, const PlanRequest& request) {
  if (std::int64_t{request.pipeline_parallel} * request.virtual_stages.value_or(1) !=
      static_cast<std::int64_t>(layers.size())) {
    return layers;
  }
  Plan plan;
  plan.pipeline_parallel = request.pipeline_parallel;
  plan.virtual_stages = request.virtual_stages.value_or(1);
  const LayersOfChunks usual(plan, all);
  for (std::size_t chunk = 0; chunk < layers.size(); ++chunk) {
    if (layers[chunk] != usual[static_cast<int>(chunk)]) return layers;
  }
  return {};
}

Expected<void> note_unread(const Options& options, std::span<const std::string_view> changing,
                           std::span<const std::string_view> neutral, ScenarioDraft& draft) {
  std::vector<std::string> harmless, unknown;
  for (const std::string& name : options.unread()) {
    const bool changes = std::ranges::any_of(
        changing, [&](std::string_view key) { return means_option(key, name); });
    if (changes && !options.is_off(name)) {
      return failure(options.file(),
                     fmt::format("found {}, which changes time or memory in a way that is not "
                                 "modelled; allowed: a configuration without it",
                                 name));
    }
    (changes || begins_with_one_of(name, neutral) ? harmless : unknown).push_back(name);
  }
  if (!harmless.empty()) draft.ignored.push_back(fmt::format("{}", fmt::join(harmless, ", ")));
  if (!unknown.empty()) {
    draft.ignored.push_back(
        fmt::format("not known, taken to change nothing: {}", fmt::join(unknown, ", ")));
  }
  return {};
}

}  // namespace trainyard
