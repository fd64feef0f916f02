// A training framework's configuration on its way to a scenario. Frameworks know the plan, seldom
// the machines, and except for Megatron-LM not the network. What is missing comes from the user's
// settings, else from a default that is reported.
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

// What the user adds to the file; empty or 0: not given.
struct ImportSettings {
  std::string model;  // a catalog name or a path
  std::string node;   // a catalog name or a path
  int nodes = 0;
  std::int64_t sequence_length = 0;
};

struct ScenarioDraft {
  std::string name;
  Json model;     // null: not in the file
  Json training;  // an object; absent keys are added later
  PlanRequest plan;
  int devices = 0;           // of the run; 0: not in the file
  int devices_per_node = 0;  // that the run uses; 0: not in the file
  // Micro-batches a rank that make the global batch, if the file says these instead.
  int accumulation = 0;
  std::vector<std::string> assumptions;
  std::vector<std::string> ignored;
};

// The product of the factors, but at most `most`: degrees from a foreign file may have a product
// that no integer holds. Requires: factors of 0 or more.
std::int64_t product_up_to(std::int64_t most, std::initializer_list<std::int64_t> factors);
// The product of degrees, capped at a number that is larger than any cluster.
int ranks_of(std::initializer_list<std::int64_t> degrees);
int model_ranks_of(const PlanRequest& plan);  // ranks of one replica: t · c · p

// The devices of the node that the cluster is going to have.
Expected<int> devices_of_node(const ImportSettings& settings);

// The devices of the cluster that the document is going to have.
Expected<int> planned_devices(const ScenarioDraft& draft, const ImportSettings& settings);

// Completes the draft and returns its document; fails if that does not read back to a legal plan.
Expected<Imported> finish_draft(ScenarioDraft draft, const ImportSettings& settings,
                                const std::string& file);

// `layers`, the layers of every chunk of a network with `all` layers; none if make_plan would
// choose the same by itself.
std::vector<int> unless_default(std::vector<int> layers, int all, const PlanRequest& request);

// Sorts the options that nobody has asked for. Those in `changing` (an entry that ends in "." or
// "_" stands for all names that begin with it) are refused unless they are off; those that begin
// with an entry of `neutral` are noted as without effect; the rest is noted as not known.
Expected<void> note_unread(const Options& options, std::span<const std::string_view> changing,
                           std::span<const std::string_view> neutral, ScenarioDraft& draft);

}  // namespace trainyard
