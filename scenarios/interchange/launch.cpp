#include "scenarios/interchange/launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/program/rank_layout.h"
#include "scenarios/interchange/shell/text.h"
#include "scenarios/json/json_document.h"

namespace trainyard {
namespace {

constexpr std::size_t kLongestJobName = 64;

// A name that is safe in sbatch's own lines, which no shell reads: letters, digits and a few signs.
std::string job_name(std::string_view name) {
  std::string safe;
  for (const char c : name.substr(0, kLongestJobName)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_';
    safe += plain ? c : '-';
  }
  return safe.empty() || safe.front() == '-' ? "trainyard" + safe : safe;
}

std::size_t place_in(std::string_view order, std::string_view name) { return order.find(name); }

// Whether two orders give the same groups of experts. Experts are laid out over the ranks of a
// stage in the order of tp, ep and dp, so that order and the order of tp, cp and dp must be the
// same.
bool same_order_in_stage(std::string_view a, std::string_view b) {
  const auto before = [](std::string_view order, std::string_view x, std::string_view y) {
    return place_in(order, x) < place_in(order, y);
  };
  constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"tp", "cp"}, {"tp", "dp"}, {"cp", "dp"}, {"tp", "ep"}, {"ep", "dp"}};
  return std::ranges::all_of(kPairs, [&](const auto& pair) {
    return before(a, pair.first, pair.second) == before(b, pair.first, pair.second);
  });
}

}  // namespace

Expected<std::vector<int>> rank_devices(const Plan& plan, const Transformer& model,
                                        std::string_view order) {
  const bool experts = plan.expert_parallel * plan.expert_tensor_parallel > 1;
  if (experts && !same_order_in_stage(plan.rank_order, order)) {
    return failure("/plan/rank_order",
                   fmt::format("found \"{}\"; allowed with expert parallelism: an order that "
                               "differs from \"{}\" in the place of pp and cp only",
                               plan.rank_order, order));
  }
  Plan framework = plan;
  framework.rank_order = order;
  const RankLayout theirs(framework, model.kv_heads), ours(plan, model.kv_heads);
  std::vector<int> devices;
  devices.reserve(static_cast<std::size_t>(plan.devices()));
  for (int rank = 0; rank < plan.devices(); ++rank) {
    devices.push_back(ours.rank_at(theirs.coordinates(rank)));
  }
  return devices;
}

ExportedFile hostfile(const std::vector<int>& devices, int devices_per_node) {
  std::string text = "# rank by rank: node of the allocation, device of the node\n";
  for (const int device : devices) {
    text += fmt::format("{} {}\n", device / devices_per_node, device % devices_per_node);
  }
  return {"hostfile", std::move(text)};
}

ExportedFile sbatch_script(const Scenario& scenario, const Plan& plan, const Launch& launch) {
  const int per_node = scenario.job.cluster.devices_per_node;
  const int nodes = (plan.devices() + per_node - 1) / per_node;
  std::string program;
  for (const std::string& word : launch.program) program += " " + shell_quoted(word);
  std::string text =
      fmt::format(R"(#!/bin/bash
#SBATCH --job-name={}
#SBATCH --nodes={}
#SBATCH --ntasks={}
#SBATCH --gpus-per-node={}
#SBATCH --exclusive
# Submit from this folder. {}, a task for each device, placed by the hostfile.
)",
                  job_name(scenario.name), nodes, plan.devices(), per_node, launch.framework);
  text += fmt::format("set -euo pipefail\nscenario={}\nexport SCENARIO_NAME=\"$scenario\"\n",
                      shell_quoted(scenario.name));
  text += R"(cd "${SLURM_SUBMIT_DIR:-.}"
mapfile -t hosts < <(scontrol show hostnames "${SLURM_JOB_NODELIST:?run this with sbatch}")
SLURM_HOSTFILE=$(mktemp)
trap 'rm -f "$SLURM_HOSTFILE"' EXIT
while read -r node device; do
  [ "$node" = '#' ] || echo "${hosts[$node]}"
done < hostfile > "$SLURM_HOSTFILE"
export SLURM_HOSTFILE
MASTER_ADDR=$(head -n 1 "$SLURM_HOSTFILE")
export MASTER_ADDR MASTER_PORT="${MASTER_PORT:-29500}"
)";
  if (launch.one_connection) {
    text += "export CUDA_DEVICE_MAX_CONNECTIONS=\"${CUDA_DEVICE_MAX_CONNECTIONS:-1}\"\n";
  }
  text += fmt::format("export WORLD_SIZE={}\n", plan.devices());
  text += R"(srun --distribution=arbitrary --ntasks="$WORLD_SIZE" bash -c '
  read -r _ device < <(sed -n "$((SLURM_PROCID + 2))p" hostfile)
  export RANK="$SLURM_PROCID" LOCAL_RANK="$device"
  exec "$@"' trainyard)";
  text += fmt::format("{}{}\n", program, launch.extra);
  return {"launch.sbatch", std::move(text)};
}

std::string exported_json(const std::vector<std::string>& files,
                          const std::vector<std::string>& notes) {
  return text_of(Json{{"trainyard", "exported/1"}, {"files", files}, {"notes", notes}});
}

}  // namespace trainyard
