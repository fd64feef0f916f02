#include "scenarios/machine/fabric_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "model/cost/collective.h"
#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/json/file.h"
#include "scenarios/json/quantity.h"
#include "scenarios/kernels/limits.h"

namespace trainyard {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;
constexpr Bytes kLargeMessage(1 << 20);

constexpr std::array<std::pair<std::string_view, CollectiveOperation>, 7> kOperations = {
    {{"all_reduce", CollectiveOperation::all_reduce},
     {"all_gather", CollectiveOperation::all_gather},
     {"reduce_scatter", CollectiveOperation::reduce_scatter},
     {"alltoall", CollectiveOperation::all_to_all},
     {"broadcast", CollectiveOperation::broadcast},
     {"EP dispatch (low latency)", CollectiveOperation::all_to_all},
     {"EP combine (low latency)", CollectiveOperation::all_to_all}}};

std::string text_at(const Json& row, std::string_view key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : "";
}

// The number before or after a word in "hidden 7168, topk 8, …, 128 tokens per rank"; 0: none.
double number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + word.size());
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}
double number_before(std::string_view text, std::string_view word) {
  const std::size_t end = text.find(word);
  if (end == std::string_view::npos) return 0;
  const std::size_t before = text.substr(0, end).find_last_not_of("0123456789");
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  double number = 0;
  std::from_chars(text.data() + begin, text.data() + end, number);
  return number;
}

// The bytes that one rank sends to the experts: a copy of each token for each of its experts, in 16
// bits.
Bytes dispatched(std::string_view config) {
  return Bytes(number_before(config, " tokens per rank") * number_after(config, "topk ") *
               number_after(config, "hidden ") * 2);
}

struct Figures {
  double nodes = 0, gpus = 0, bytes = 0, time_us = 0, bus = 0, bandwidth = 0;  // 0: absent
};

struct FigureRange {
  std::string_view key;
  double Figures::*member;
  double least, most;
  bool whole;
};
// Rates may be 0, because they are printed to two digits and those of small messages round to 0.
constexpr std::array<FigureRange, 6> kRanges = {
    {{"nodes", &Figures::nodes, 1, 1e6, true},
     {"gpus", &Figures::gpus, 1, 1e8, true},
     {"bytes", &Figures::bytes, 1, 1e15, true},
     {"time_us", &Figures::time_us, 0.1, 1e12, false},
     {"busbw_gb_per_s", &Figures::bus, 0, 1e6, false},
     {"bandwidth_gb_per_s", &Figures::bandwidth, 0, 1e6, false}}};

bool is_in(const FigureRange& range, const Json& value) {
  if (!value.is_number()) return false;
  const auto number = value.get<double>();
  return number >= range.least && number <= range.most &&
         (!range.whole || number == std::floor(number));
}

Expected<Figures> figures_of(const Json& row, const std::string& where) {
  Figures figures;
  for (const FigureRange& range : kRanges) {
    const auto found = row.find(range.key);
    if (found == row.end()) continue;
    if (!is_in(range, *found)) {
      return failure(fmt::format("{}/{}", where, range.key),
                     fmt::format("found {}; allowed: a {}number from {} to {}", shown(*found),
                                 range.whole ? "whole " : "", range.least, range.most));
    }
    figures.*range.member = found->get<double>();
  }
  return figures;
}

// The time of a row. Requires: lacking() is empty.
Seconds time_of(CollectiveOperation operation, const Figures& row, Bytes bytes) {
  if (row.time_us > 0) return Seconds(row.time_us * kMicro);
  if (row.bandwidth > 0) return bytes / BytesPerSecond(row.bandwidth * kGiga);
  const auto ranks = static_cast<int>(row.gpus);
  const BytesPerSecond at_one_second = bus_bandwidth(operation, ranks, bytes, Seconds(1));
  return Seconds(at_one_second / BytesPerSecond(row.bus * kGiga));
}

Expected<CollectiveOperation> operation_of(const Json& row, const std::string& where) {
  const auto op = row.find("op");
  const auto* const known = std::ranges::find(
      kOperations, text_at(row, "op"), [](const auto& operation) { return operation.first; });
  if (known != kOperations.end()) return known->second;
  std::vector<std::string_view> names;
  names.reserve(kOperations.size());
  for (const auto& [name, operation] : kOperations) names.push_back(name);
  return failure(fmt::format("{}/op", where),
                 fmt::format("found {}; allowed: {}", op == row.end() ? "none" : shown(*op),
                             fmt::join(names, ", ")));
}

// What a row across nodes lacks for its size or time; empty: nothing.
std::string lacking(const Figures& row, Bytes bytes) {
  if (bytes <= Bytes(0)) {
    return "found no \"bytes\"; allowed: them, or a \"config\" with tokens per rank, topk and "
           "hidden";
  }
  if (row.time_us > 0 || row.bandwidth > 0) return "";
  if (row.bus <= 0) {
    return "found no \"time_us\"; allowed: it, or a bandwidth above 0";
  }
  return row.gpus >= 2 ? "" : "found no \"gpus\"; allowed: from 2, with \"busbw_gb_per_s\"";
}

// Fails if a row has no source, since it might belong to the source in use.
Expected<void> check_source(const Json& row, const std::string& where) {
  if (!row.is_object()) {
    return failure(where, fmt::format("found {}; allowed: an object", shown(row)));
  }
  const auto source = row.find("source");
  if (source == row.end()) return failure(where, "found no \"source\"; allowed: a text");
  if (source->is_string()) return {};
  return failure(where + "/source", fmt::format("found {}; allowed: a text", shown(*source)));
}

// The column that time_of uses.
std::string_view column_of_time(const Figures& row) {
  if (row.time_us > 0) return "time_us";
  return row.bandwidth > 0 ? "bandwidth_gb_per_s" : "busbw_gb_per_s";
}

// Appends a row, unless it was measured inside one node.
Expected<void> append_row(const Json& row, const std::string& where, FabricRows& rows) {
  const auto figures = figures_of(row, where);
  if (!figures) return tl::unexpected(figures.error());
  if (figures->nodes == 0) {
    return failure(where, "found no \"nodes\"; allowed: a whole number from 1");
  }
  if (figures->nodes < 2) return {};
  const auto operation = operation_of(row, where);
  if (!operation) return tl::unexpected(operation.error());
  const Bytes bytes =
      figures->bytes > 0 ? Bytes(figures->bytes) : dispatched(text_at(row, "config"));
  if (const std::string missing = lacking(*figures, bytes); !missing.empty()) {
    return failure(where, missing);
  }
  rows.samples.push_back(
      {*operation, static_cast<int>(figures->nodes), bytes, time_of(*operation, *figures, bytes)});
  rows.places.push_back(fmt::format("{}/{}", where, column_of_time(*figures)));
  return {};
}

int devices_of(const FabricProblem& problem, const FabricSample& sample) {
  return problem.cluster.devices_per_node * sample.nodes;
}

std::vector<ScoredKernel> scored(const FabricProblem& problem,
                                 const std::vector<FabricSample>& samples) {
  const Cluster& cluster = problem.cluster;
  const BytesPerSecond share =
      cluster.inter.bandwidth * cluster.inter.nics_per_node / cluster.devices_per_node;
  std::vector<ScoredKernel> kernels;
  kernels.reserve(samples.size());
  for (const FabricSample& sample : samples) {
    kernels.push_back({sample.time, fabric_sample_time(problem, sample),
                       fmt::format("{} devices", devices_of(problem, sample)),
                       sample.bytes >= kLargeMessage ? "large" : "small", sample.bytes / share});
  }
  return kernels;
}

KernelFileReport report_of(const FabricRows& rows, std::vector<ScoredKernel> kernels) {
  return summarise_kernels(rows.file, "across nodes", std::move(kernels));
}

// The fold of each sample: its number of nodes where there are several, else its place in the
// order of sizes.
std::vector<int> folds_of(const std::vector<FabricSample>& samples) {
  std::set<int> nodes;
  std::set<double> sizes;
  for (const FabricSample& sample : samples) {
    nodes.insert(sample.nodes);
    sizes.insert(sample.bytes.value());
  }
  std::vector<int> folds;
  folds.reserve(samples.size());
  for (const FabricSample& sample : samples) {
    const auto place = std::distance(sizes.begin(), sizes.find(sample.bytes.value()));
    folds.push_back(nodes.size() > 1 ? sample.nodes : static_cast<int>(place) % kKernelFolds);
  }
  return folds;
}

Expected<std::vector<ScoredKernel>> cross_validate(const FabricProblem& problem,
                                                   const std::vector<FabricSample>& samples) {
  const std::vector<int> folds = folds_of(samples);
  std::vector<ScoredKernel> kernels;
  for (const int held : std::set<int>(folds.begin(), folds.end())) {
    std::vector<FabricSample> used, held_back;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      (folds[i] == held ? held_back : used).push_back(samples[i]);
    }
    auto inter = fit_fabric(problem, used);
    if (!inter) return tl::unexpected(std::move(inter.error()));
    FabricProblem fitted = problem;
    fitted.cluster.inter = *std::move(inter);
    std::ranges::move(scored(fitted, held_back), std::back_inserter(kernels));
  }
  return kernels;
}

std::string provenance_of(const FabricToFit& fabric, const FabricRows& rows,
                          const KernelFileReport& validated, std::string_view date) {
  std::string errors;
  for (const KernelRegion& region : validated.regions) {
    if (!region.region.empty() || region.group.empty()) continue;
    errors += fmt::format(", {} {:.1f} %", region.group, 100 * region.errors.mape);
  }
  const std::set<int> folds = [&] {
    const std::vector<int> all = folds_of(rows.samples);
    return std::set<int>(all.begin(), all.end());
  }();
  return fmt::format(
      "fitted {} to {} ({} rows of {}, FNV-1a {}); mean error on {} held back in turn: {:.1f} %{}",
      date, std::filesystem::path(rows.file).filename().string(), rows.samples.size(),
      fabric.source, rows.digest, *folds.begin() >= 2 ? "numbers of devices" : "sizes",
      100 * validated.errors.mape, errors);
}

}  // namespace

Expected<FabricToFit> read_fabric(const std::string& reference, std::string_view asker) {
  auto named = read_named(fabric_section(), reference, asker);
  if (!named) return tl::unexpected(std::move(named.error()));
  FabricDocument& fabric = named->content;
  if (!fabric.measured) {
    return failure(named->file,
                   "found no \"measured\"; allowed: the nodes and the source of the rows");
  }
  const FabricMeasured& measured = *fabric.measured;
  return FabricToFit{std::move(fabric.name),
                     measured.source,
                     {cluster_of(measured.node, 1, fabric.inter), measured.algorithm},
                     std::move(named->value)};
}

Expected<FabricRows> read_fabric_rows(const std::filesystem::path& file, std::string_view source) {
  const std::string name = shown_path(file);
  const auto text = read_file(file);
  if (!text) return failure(name, text.error().message);
  const auto json = parse_json(*text);
  if (!json) return failure(fmt::format("{}: {}", name, json.error().where), json.error().message);
  const bool has_rows = json->is_object() && json->contains("rows") && (*json)["rows"].is_array();
  if (!has_rows) return failure(name, "found no \"rows\"; allowed: an object with a list of them");
  FabricRows rows{name, {}, {}, digest_of(*text)};
  const Json& list = (*json)["rows"];
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("{}: /rows/{}", name, i);
    if (auto named = check_source(list[i], where); !named) {
      return tl::unexpected(std::move(named.error()));
    }
    if (text_at(list[i], "source") != source) continue;
    auto done = append_row(list[i], where, rows);
    if (!done) return tl::unexpected(std::move(done.error()));
  }
  if (!rows.samples.empty()) return rows;
  return failure(name, fmt::format("found no row across nodes of {} with size and time; allowed: "
                                   "one or more",
                                   shown(source)));
}

Expected<void> check_fabric_times(const FabricToFit& fabric, const FabricRows& rows) {
  const Cluster& cluster = fabric.problem.cluster;
  const BytesPerSecond nics = cluster.inter.bandwidth * cluster.inter.nics_per_node;
  if (nics <= BytesPerSecond(0)) return {};
  for (std::size_t i = 0; i < rows.samples.size(); ++i) {
    const FabricSample& sample = rows.samples[i];
    // Each device has its own bytes in an all-to-all.
    const int senders =
        sample.operation == CollectiveOperation::all_to_all ? cluster.devices_per_node : 1;
    const double from_others = (sample.nodes - 1.0) / sample.nodes;
    const Seconds at_nics = sample.bytes * from_others * senders / nics;
    const Seconds least = at_nics / kAboveDatasheet;
    const Seconds most = kAboveRoofs * (at_nics + kRoofLaunch);
    if (sample.time >= least && sample.time <= most) continue;
    const std::string allowed =
        sample.time < least
            ? fmt::format("from {:.4g} us, {} times as fast as the NICs of a node",
                          least.value() / kMicro, kAboveDatasheet)
            : fmt::format(
                  "to {:.0f} us, {} times what a launch of {:.4g} us and the NICs of a "
                  "node come to",
                  most.value() / kMicro, kAboveRoofs, kRoofLaunch.value() / kMicro);
    return failure(rows.places[i], fmt::format("found a time of {:.10g} us; allowed: {}",
                                               sample.time.value() / kMicro, allowed));
  }
  return {};
}

KernelFileReport check_fabric_rows(const FabricToFit& fabric, const FabricRows& rows) {
  return report_of(rows, scored(fabric.problem, rows.samples));
}

Expected<FabricFit> fit_fabric_rows(const FabricToFit& fabric, const FabricRows& rows,
                                    std::string_view date) {
  auto inter = fit_fabric(fabric.problem, rows.samples);
  if (!inter) return failure(rows.file, inter.error().message);
  FabricProblem fitted = fabric.problem;
  fitted.cluster.inter = *inter;
  auto validated = cross_validate(fabric.problem, rows.samples);
  if (!validated) return failure(rows.file, validated.error().message);
  FabricFit fit{*std::move(inter), report_of(rows, scored(fitted, rows.samples)),
                report_of(rows, *std::move(validated)), ""};
  fit.provenance = provenance_of(fabric, rows, fit.cross_validated, date);
  return fit;
}

std::string fabric_document(const FabricToFit& fabric, const FabricFit& fit) {
  Json json = {{"trainyard", "fabric/1"}};
  json.update(fabric.value);
  Json sources = json.value("sources", Json::object());
  json.erase("sources");  // to keep it last
  const Json written = fabric_section().write({.inter = fit.inter});
  for (const std::string_view key : {"efficiency", "latency", "small_latency", "small_share"}) {
    const bool fitted =
        written.contains(key) && !(key.starts_with("small") && fit.inter.small_share == 0);
    if (!fitted) continue;
    json[std::string(key)] = written[std::string(key)];
    sources[std::string(key)] = fit.provenance;
  }
  json["sources"] = std::move(sources);
  return text_of(json);
}

Expected<void> check_fabric_document(const std::string& text, const std::filesystem::path& file) {
  return check_written(fabric_section(), text, file);
}

std::string fabric_fit_json(const FabricToFit& fabric, const FabricFit& fit) {
  return kernel_fit_json(fabric.name,
                         {{}, {fit.fitted}, {fit.cross_validated}, {{"/sources", fit.provenance}}});
}

}  // namespace trainyard
