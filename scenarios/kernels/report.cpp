#include "scenarios/kernels/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "model/calibration/roof_baseline.h"

namespace trainyard {
namespace {

double error_of(Seconds predicted, Seconds measured) { return std::abs(predicted / measured - 1); }

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// A quantile by linear interpolation between order statistics. Requires: sorted, not empty.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

// The error of a baseline fitted to exactly these rows, group by group; absent if none has an
// ideal.
std::optional<double> baseline_error(const std::vector<const ScoredKernel*>& kernels) {
  std::map<std::string_view, std::vector<RoofSample>> groups;
  for (const ScoredKernel* kernel : kernels) {
    if (kernel->ideal) groups[kernel->group].push_back({kernel->measured, *kernel->ideal});
  }
  double sum = 0, rows = 0;
  for (const auto& [group, samples] : groups) {
    const auto size = static_cast<double>(samples.size());
    sum += size * mean_error(fit_roof_baseline(samples), samples);
    rows += size;
  }
  return rows > 0 ? std::optional(sum / rows) : std::nullopt;
}

template <typename Wanted>
KernelErrors errors_of(const std::vector<ScoredKernel>& kernels, Wanted wanted) {
  std::vector<double> errors;
  std::vector<const ScoredKernel*> scored;
  for (const ScoredKernel& kernel : kernels) {
    if (!wanted(kernel)) continue;
    errors.push_back(error_of(kernel.predicted, kernel.measured));
    scored.push_back(&kernel);
  }
  KernelErrors result{.rows = static_cast<int>(errors.size())};
  if (errors.empty()) return result;
  std::ranges::sort(errors);
  result.mape = mean_of(errors);
  result.median = quantile(errors, 0.5);
  result.p90 = quantile(errors, 0.9);
  result.baseline_mape = baseline_error(scored);
  return result;
}

KernelSamples rows_where(const KernelSamples& samples, const std::vector<bool>& wanted) {
  return std::visit(
      [&wanted](const auto& rows) -> KernelSamples {
        std::decay_t<decltype(rows)> some;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          if (wanted[i]) some.push_back(rows[i]);
        }
        return some;
      },
      samples);
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

// All tables of a family together.
struct FamilyTables {
  const KernelFamily* family = nullptr;
  std::vector<const KernelTable*> tables;
  KernelSamples samples;
};

void append(KernelSamples& samples, const KernelSamples& more) {
  std::visit(
      [&samples](const auto& rows) {
        auto& all = std::get<std::decay_t<decltype(rows)>>(samples);
        all.insert(all.end(), rows.begin(), rows.end());
      },
      more);
}

std::vector<FamilyTables> by_family(const std::vector<KernelTable>& tables) {
  std::vector<FamilyTables> families;
  for (const KernelTable& table : tables) {
    auto found = std::ranges::find(families, table.family, &FamilyTables::family);
    if (found == families.end()) {
      families.push_back({table.family, {&table}, table.samples});
    } else {
      found->tables.push_back(&table);
      append(found->samples, table.samples);
    }
  }
  return families;
}

int fold_of(std::uint64_t shape) {
  const std::uint64_t spread = shape * 0x9E3779B97F4A7C15U;
  return static_cast<int>((spread >> 40U) % kKernelFolds);
}

// Scores every row by a fit to the other folds. Each fit starts from `device`, so that nothing of
// the fold's own rows is in it.
Expected<KernelFileReport> cross_validate(const Device& device, const FamilyTables& tables,
                                          const FitProgress& progress) {
  const std::vector<std::uint64_t> shapes = tables.family->shapes(tables.samples);
  std::vector<ScoredKernel> scored;
  for (int fold = 0; fold < kKernelFolds; ++fold) {
    std::vector<bool> held;
    held.reserve(shapes.size());
    for (const std::uint64_t shape : shapes) held.push_back(fold_of(shape) == fold);
    std::vector<bool> used = held;
    used.flip();
    if (std::ranges::find(held, true) == held.end()) continue;
    Device fitted = device;
    const FitProgress part = [&](double done) { progress((fold + done) / kKernelFolds); };
    auto done = tables.family->fit(fitted, rows_where(tables.samples, used), part);
    if (!done) {
      done.error().message += fmt::format(", also with one of {} folds held back", kKernelFolds);
      return tl::unexpected(std::move(done.error()));
    }
    auto kernels = tables.family->score(fitted, rows_where(tables.samples, held));
    if (!kernels) return tl::unexpected(std::move(kernels.error()));
    scored.insert(scored.end(), kernels->begin(), kernels->end());
  }
  std::vector<std::string> files;
  for (const KernelTable* table : tables.tables) files.push_back(table->file);
  return summarise_kernels(fmt::format("{}", fmt::join(files, ", ")), tables.family->name,
                           std::move(scored));
}

std::string errors_in_words(const KernelFileReport& report) {
  std::string words = fmt::format("{:.1f} % on all", 100 * report.errors.mape);
  for (const KernelRegion& region : report.regions) {
    if (region.region.empty()) continue;
    words += fmt::format(", {}{}{} {:.1f} %", region.group, region.group.empty() ? "" : " ",
                         region.region, 100 * region.errors.mape);
  }
  return words;
}

std::string provenance_of(const FamilyTables& tables, const KernelFileReport& validated,
                          std::string_view date) {
  std::vector<std::string> data;
  for (const KernelTable* table : tables.tables) {
    const auto rows = std::visit([](const auto& list) { return list.size(); }, table->samples);
    data.push_back(fmt::format("{} ({} rows, FNV-1a {})",
                               std::filesystem::path(table->file).filename().string(), rows,
                               table->digest));
  }
  return fmt::format("fitted {} to {}; mean error on shapes held back ({} folds): {}", date,
                     fmt::join(data, " and "), kKernelFolds, errors_in_words(validated));
}

// The device at the clock of tables, which are measured in short runs of one kernel.
Device at_table_clock(Device device) {
  device.rates.sustained_clock = 1;
  return device;
}

Error unmodelled(const FamilyTables& tables, std::string_view verb) {
  return {tables.tables.front()->file,
          fmt::format("found a table of {}, which cannot be {}; allowed: other tables",
                      tables.family->name, verb)};
}

Error in_table(const KernelTable& table, Error error) {
  error.where = table.file;
  return error;
}

}  // namespace

KernelFileReport summarise_kernels(std::string file, std::string_view family,
                                   std::vector<ScoredKernel> kernels) {
  KernelFileReport report{std::move(file), std::string(family), {}, {}, {}};
  report.errors = errors_of(kernels, [](const ScoredKernel&) { return true; });
  std::vector<std::string> groups, regions;
  for (const ScoredKernel& kernel : kernels) {
    add_once(groups, kernel.group);
    add_once(regions, std::string(kernel.region));
  }
  if (groups.size() > 1) groups.insert(groups.begin(), "");  // all groups together
  regions.insert(regions.begin(), "");
  for (const std::string& group : groups) {
    for (const std::string& region : regions) {
      const auto wanted = [&](const ScoredKernel& kernel) {
        return (group.empty() || kernel.group == group) &&
               (region.empty() || kernel.region == region);
      };
      const KernelErrors errors = errors_of(kernels, wanted);
      if (errors.rows > 0 && !(group.empty() && region.empty())) {
        report.regions.push_back({group, region, errors});
      }
    }
  }
  report.kernels = std::move(kernels);
  return report;
}

Expected<std::vector<KernelFileReport>> check_kernels(const Device& device,
                                                      const std::vector<KernelTable>& tables) {
  const Device measured = at_table_clock(device);
  std::vector<KernelFileReport> reports;
  for (const KernelTable& table : tables) {
    if (table.family->score == nullptr) {
      return tl::unexpected(unmodelled({table.family, {&table}, {}}, "scored"));
    }
    auto scored = table.family->score(measured, table.samples);
    if (!scored) return tl::unexpected(in_table(table, std::move(scored.error())));
    reports.push_back(summarise_kernels(table.file, table.family->name, *std::move(scored)));
  }
  return reports;
}

Expected<KernelFit> fit_kernels(const Device& device, const std::vector<KernelTable>& tables,
                                std::string_view date, const FitProgress& progress) {
  KernelFit fit{at_table_clock(device), {}, {}, {}};
  const std::vector<FamilyTables> families = by_family(tables);
  double done = 0;
  const double share = 1.0 / (static_cast<double>(families.size()) * (kKernelFolds + 1));
  for (const FamilyTables& family : families) {
    if (family.family->fit == nullptr) return tl::unexpected(unmodelled(family, "fitted"));
    const FitProgress first = [&](double part) { progress(done + share * part); };
    auto fitted = family.family->fit(fit.device, family.samples, first);
    if (!fitted) return tl::unexpected(in_table(*family.tables.front(), fitted.error()));
    done += share;
    const FitProgress rest = [&](double part) { progress(done + share * kKernelFolds * part); };
    auto validated = cross_validate(at_table_clock(device), family, rest);
    if (!validated) return tl::unexpected(in_table(*family.tables.front(), validated.error()));
    done += share * kKernelFolds;
    fit.provenance.emplace_back(family.family->source, provenance_of(family, *validated, date));
    fit.cross_validated.push_back(*std::move(validated));
  }
  auto files = check_kernels(fit.device, tables);
  if (!files) return tl::unexpected(std::move(files.error()));
  fit.files = *std::move(files);
  fit.device.rates.sustained_clock = device.rates.sustained_clock;
  const auto is_gemm = [](const FamilyTables& family) { return family.family->name == "gemm"; };
  if (std::ranges::any_of(families, is_gemm)) fit.device.interval_widening = 1;
  return fit;
}

ScatterChart residual_chart(std::string_view device, const std::vector<KernelFileReport>& files) {
  ScatterChart chart{.title = fmt::format("{}: kernels, predicted over measured time", device),
                     .x = {"measured time, µs", true},
                     .y = {"predicted / measured", false, 0.5, 1.5},
                     .levels = {0.9, 1, 1.1}};
  std::map<std::string, std::vector<ScatterPoint>> series;
  for (const KernelFileReport& file : files) {
    for (const ScoredKernel& kernel : file.kernels) {
      const std::string name = fmt::format("{} {} {}", file.family, kernel.group, kernel.region);
      series[name].push_back({kernel.measured.value() * 1e6, kernel.predicted / kernel.measured});
    }
  }
  for (auto& [name, points] : series) chart.series.push_back({name, std::move(points)});
  return chart;
}

}  // namespace trainyard
