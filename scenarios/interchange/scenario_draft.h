// What a training framework's configuration says, on its way to a scenario: frameworks know the
// plan, seldom the machines and, but for Megatron-LM, not the network. What is missing is taken
// from the user's settings, else from a default that is printed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/plan/plan.h"
#include "scenarios/interchange/imported.h"
#include "scenarios/interchange/options.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

inline constexpr std::string_view kDefaultModel = "llama-3.1-8b";

// What the user adds to a file; empty or 0: nothing.
struct ImportSettings {
  std::string model;  // a catalog name or a path
  std::string node;   // the same
  int nodes = 0;
  std::int64_t sequence_length = 0;
};

struct ScenarioDraft {
  std::string name;
  Json model;     // null: the file does not say it
  Json training;  // an object; what is absent is added
  PlanRequest plan;
  int devices = 0;           // of the run; 0: not said
  int devices_per_node = 0;  // that the run uses; 0: not said
  // global_batch, where the file says it in micro-batches a rank instead.
  int accumulation = 0;
  std::vector<std::string> assumptions;
  std::vector<std::string> ignored;
};

// The product, or `most` where it is more: degrees that a stranger writes have products that no
// integer holds. Requires: factors of 0 or more.
std::int64_t product_up_to(std::int64_t most, std::initializer_list<std::int64_t> factors);
// Ranks that degrees make, up to more than any cluster has.
int ranks_of(std::initializer_list<std::int64_t> degrees);
int model_ranks_of(const PlanRequest& plan);  // of one replica

// Devices of a node, of those that the cluster is going to have.
Expected<int> devices_of_node(const ImportSettings& settings);

// Devices of the cluster that the document is going to have.
Expected<int> planned_devices(const ScenarioDraft& draft, const ImportSettings& settings);

// The document, once it reads back to a legal plan; else the error that it would give.
Expected<Imported> finish_draft(ScenarioDraft draft, const ImportSettings& settings,
                                const std::string& file);

// Layers of every chunk of a network of `all`, or nothing where make_plan chooses them by itself.
std::vector<int> unless_default(std::vector<int> layers, int all, const PlanRequest& request);

// Names of a tree or command line that nobody read, in three kinds: those in `changing` (ending in
// "." or "_": the beginning of names) are refused unless they are off, those that begin with one of
// `neutral` change nothing, the rest is not known.
Expected<void> note_unread(const Options& options, std::span<const std::string_view> changing,
                           std::span<const std::string_view> neutral, ScenarioDraft& draft);

}  // namespace trainyard
