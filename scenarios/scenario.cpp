#include "scenarios/scenario.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "model/workload/flop.h"
#include "planner/request.h"
#include "scenarios/catalog.h"
#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/plan_value.h"
#include "scenarios/scenario_text.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// The text of the sections that make the job, without the plan.
std::string job_text(const Json& document) {
  return Json{document.at("model"), document.at("cluster"), document.at("training")}.dump();
}

// `value` still carries the tag.
Expected<Scenario> read_value(Json value, const Place& place) {
  if (auto tagged = take_tag(value, "scenario", place); !tagged) {
    return tl::unexpected(tagged.error());
  }
  if (auto fits = check(scenario_section().spec(), value, place); !fits) {
    return tl::unexpected(fits.error());
  }
  Scenario scenario;
  if (auto done = scenario_section().read(value, scenario, place); !done) {
    return tl::unexpected(done.error());
  }
  if (scenario.name.empty()) scenario.name = place.document->file.stem().string();
  scenario.job_text = job_text(value);
  if (!scenario.plan) return scenario;
  for (const auto& entry : value.at("plan").items()) scenario.plan_keys.push_back(entry.key());
  return scenario;
}

// Rewrites a relative path of the original for a document in `folder`; without folder, as an
// absolute path.
void rebase(Json& text, const fs::path& original_folder, const fs::path& folder) {
  const fs::path path = text.get<std::string>();
  if (path.is_absolute()) return;
  const fs::path whole = fs::absolute(original_folder / path);
  text = (folder.empty() ? whole.lexically_normal() : fs::proximate(whole, folder)).string();
}

// The folder of a document; empty if it has none, as behind a pipe that /dev/stdout stands for.
fs::path folder_of(const fs::path& destination) {
  std::error_code none;
  return fs::weakly_canonical(fs::absolute(destination), none).parent_path();
}

void rebase_references(Json& value, const Document& original, const fs::path& destination) {
  const fs::path folder = folder_of(destination);
  visit_references(scenario_section().spec(), value, [&](std::string_view kind, Json& text) {
    const bool catalogued =
        !kind.empty() && find_in_catalog(kind, text.get<std::string>()) != nullptr;
    if (!catalogued) rebase(text, original.folder(), folder);
  });
}

// The document `file` with `change` applied to it as it was read.
template <typename Change>
Expected<std::string> changed_scenario(const fs::path& file, const fs::path& destination,
                                       const Change& change) {
  auto opened = open_file(file);
  if (!opened) return tl::unexpected(opened.error());
  const OpenDocument& document = **opened;
  if (auto scenario = read_value(document.value, document.root()); !scenario) {
    return tl::unexpected(scenario.error());
  }
  Json value = document.value;
  change(value);
  if (!destination.empty()) rebase_references(value, document.document, destination);
  return text_of(value);
}

// Writes the plan. A group that is used alone becomes a cluster of like nodes with its own price.
void write_plan_of_groups(const GroupedPlan& found, Json& value) {
  if (found.use == GroupUse::alone) {
    const std::size_t group = found.order.front();
    value["cluster"] = Json(value["cluster"]["groups"][group]);
    if (const auto price = value.find("price"); price != value.end() && price->is_array()) {
      *price = Json((*price)[group]);
    }
    value["plan"] = plan_value(found.plan);
    return;
  }
  const GroupedRequest request = request_of(found);
  value["plan"] = plan_section().write(request.plan);
  value["use_of_groups"] = use_of_groups_section().write(request);
}

}  // namespace

Json plan_value(const Plan& plan) { return plan_section().write(request_of(plan)); }

Expected<Scenario> read_scenario(const fs::path& file) {
  auto opened = open_file(file);
  if (!opened) return tl::unexpected(opened.error());
  const OpenDocument& document = **opened;
  return read_value(document.value, document.root());
}

Expected<Scenario> parse_scenario(std::string_view text, const std::string& name) {
  auto value = parse_json(text);
  if (!value) {
    return failure(fmt::format("{}: {}", name, value.error().where), value.error().message);
  }
  const Document document{name, fs::current_path() / "-", nullptr};
  return read_value(*std::move(value), {&document, ""});
}

Expected<void> check_like_nodes(const Scenario& scenario) {
  if (!scenario.unlike) return {};
  return failure("/cluster/groups",
                 "found groups of unlike nodes; allowed: with trainyard plan, estimate, simulate, "
                 "compare, program, sweep, goodput and diff, or one kind of node");
}

Expected<Scenario> parse_scenario_at(std::string_view text, const fs::path& file) {
  auto value = parse_json(text);
  const std::string name = shown_path(file);
  if (!value) {
    const Error& error = value.error();
    return failure(error.where.empty() ? name : fmt::format("{}: {}", name, error.where),
                   error.message);
  }
  const Document document{name, fs::weakly_canonical(fs::absolute(file)), nullptr};
  return read_value(*std::move(value), {&document, ""});
}

Expected<std::vector<Scenario>> read_scenarios(const fs::path& file) {
  auto opened = open_file(file);
  if (!opened) return tl::unexpected(opened.error());
  const OpenDocument& document = **opened;
  const bool list = document.value.is_array();
  if (list && document.value.empty()) {
    return document.root().error("found an empty list; allowed: scenarios");
  }
  std::vector<Scenario> scenarios;
  const std::size_t count = list ? document.value.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    auto scenario = list ? read_value(document.value[i], document.root() / i)
                         : read_value(document.value, document.root());
    if (!scenario) return tl::unexpected(scenario.error());
    scenarios.push_back(std::move(*scenario));
  }
  return scenarios;
}

std::optional<Seconds> measured_step_time(const Scenario& scenario) {
  if (!scenario.measured) return std::nullopt;
  const Measured& measured = *scenario.measured;
  if (measured.step_time) return measured.step_time;
  const Job& job = scenario.job;
  const Training& training = job.training;
  const double devices = job.cluster.devices();
  const Flops flop = model_flop(job.model, training);
  constexpr FlopsPerSecond kTera{1e12};
  if (measured.tflops_per_device) return flop / (devices * *measured.tflops_per_device * kTera);
  if (measured.mfu) {
    return flop /
           (devices * *measured.mfu * job.cluster.device.peak_of(training.precision.layer_gemm));
  }
  if (measured.tokens_per_second_per_device) {
    const double tokens =
        static_cast<double>(training.global_batch) * static_cast<double>(training.sequence_length);
    return Seconds(tokens / (devices * *measured.tokens_per_second_per_device));
  }
  return std::nullopt;
}

Expected<std::string> scenario_with_plan(const fs::path& file, const Plan& plan,
                                         const fs::path& destination) {
  return changed_scenario(file, destination,
                          [&plan](Json& value) { value["plan"] = plan_value(plan); });
}

Expected<std::string> scenario_with_plan(const fs::path& file, const GroupedPlan& plan,
                                         const fs::path& destination) {
  return changed_scenario(file, destination,
                          [&plan](Json& value) { write_plan_of_groups(plan, value); });
}

Expected<std::string> scenario_at(std::string_view text, const fs::path& file,
                                  const fs::path& destination) {
  if (folder_of(file) == folder_of(destination)) return std::string(text);
  if (auto scenario = parse_scenario_at(text, file); !scenario) {
    return tl::unexpected(scenario.error());
  }
  const Document document{shown_path(file), fs::weakly_canonical(fs::absolute(file)), nullptr};
  Json value = parse_json(text).value();
  rebase_references(value, document, destination);
  return text_of(value);
}

}  // namespace trainyard
