// What the commands print and write as JSON (design §4): stable keys, SI numbers with the unit in
// the key, ratios and errors as fractions, null where something is unknown. The one writer of
// result files.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "model/cost/estimate.h"
#include "model/expected.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "planner/findings/capacity.h"
#include "planner/findings/findings.h"
#include "planner/planner.h"
#include "scenarios/scenario.h"
#include "scenarios/validation.h"

namespace trainyard {

// `trainyard estimate`: every key of design §4, and the complete plan; `auto_schedule` where the
// scenario's schedule is `auto`: the `schedule` that it became (null: a found order, which `plan`
// has) and its `virtual_stages`.
std::string estimate_json(const Scenario& scenario, const PreparedJob& job, const Plan& plan,
                          const Estimate& estimate);

// `trainyard plan`: `plans`, `closest` (what misses the memory by the least, when nothing fits) and
// `shortfall` (what the first of them lacks), `improvement` (null: none was found), `baselines`,
// `marginal_values`, `ways_out`, `explained` (null: not asked), `notes`, `written` (null: no file
// was asked for) and `search`. `wall_time` counts from the start of the process.
std::string plan_json(const Scenario& scenario, const PreparedJob& job, const SearchResult& result,
                      const PlanFindings& findings, Seconds wall_time);

// The same for a scenario that asks for sizes: `objective`, `points`, and the places in it of the
// answers, of which null is none.
std::string capacity_json(const Scenario& scenario, const std::vector<CapacityPoint>& points,
                          Objective objective);

// `trainyard validate`.
std::string validation_json(const ValidationReport& report);

// `trainyard import huggingface`: a model/1 document that reads back to `model`.
std::string model_document(const Transformer& model, std::string_view source);

// `trainyard export`: the files that were written, and what they leave to their user.
std::string exported_json(const std::vector<std::string>& files,
                          const std::vector<std::string>& notes);

// A file that is written piece by piece, whole or not at all: a temporary file beside it, renamed
// when it is complete and removed when it is given up.
class OutputFile {
 public:
  static Expected<OutputFile> open(const std::filesystem::path& file);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  void write(std::string_view text) {
    stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  Expected<void> finish();

 private:
  OutputFile(std::filesystem::path file, std::filesystem::path temporary);

  std::filesystem::path file_, temporary_;  // the latter empty: there is none any more
  std::ofstream stream_;
};

// Before work whose results are to go there: whether a file can be written, as far as can be known
// without writing it. A pipe is not opened, whose reader would find its end.
Expected<void> check_writable(const std::filesystem::path& file);

// Writes the whole file or nothing.
Expected<void> write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace trainyard
