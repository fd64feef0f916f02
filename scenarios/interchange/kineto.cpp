#include "scenarios/interchange/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "scenarios/json/json_document.h"
#include "scenarios/json/quantity.h"

namespace trainyard {
namespace {

constexpr std::size_t kMostSteps = 100'000;
constexpr double kLatest = 1e18;  // us

struct Rule {
  std::string_view part;  // part of the name, in lower case
  std::string_view kind;
};
// The first rule that fits decides. NCCL names kernels ncclDevKernel_AllReduce_…; a SendRecv is an
// all-to-all or a send between stages.
constexpr std::array kRules = {
    Rule{"allreduce", "all-reduce"},
    Rule{"allgather", "all-gather"},
    Rule{"reducescatter", "reduce-scatter"},
    Rule{"ncclkernel_broadcast", "broadcast"},
    Rule{"nccldevkernel_broadcast", "broadcast"},
    Rule{"nccl", "send, receive and all-to-all"},
    Rule{"memcpy", "copies"},
    Rule{"memset", "copies"},
    Rule{"multi_tensor_apply", "optimizer"},
    Rule{"adam", "optimizer"},
    Rule{"gemm", "gemm"},
    Rule{"nvjet", "gemm"},
    Rule{"wgmma", "gemm"},
    Rule{"xmma", "gemm"},
    Rule{"cutlass", "gemm"},
    Rule{"norm", "norms"},
    Rule{"softmax", "softmax"},
    Rule{"elementwise", "element-wise"},
    Rule{"triton", "element-wise"},
    Rule{"reduce_kernel", "reductions"},
};

std::string in_small_letters(std::string_view text) {
  std::string small(text.substr(0, 1000));
  std::ranges::transform(small, small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return small;
}

struct KinetoEvent {
  std::string phase, category, name;
  double begin = 0, duration = 0;  // us
  bool timed = false;
};

struct Sum {
  std::int64_t kernels = 0;
  double time = 0;  // us
};

// The sums that are kept of a trace.
struct Trace {
  std::vector<double> steps;  // us
  std::map<std::string_view, Sum> sums;
  double first = kLatest, last = -kLatest;
  std::optional<std::int64_t> rank;
  std::string product;
  bool has_events = false;
};

// Reads {"traceEvents": [{…}, …], "distributedInfo": {"rank": …}} event by event.
class Handler {
 public:
  Trace trace;
  Error error;

  bool null() { return true; }
  bool boolean(bool /*value*/) { return true; }
  bool number_integer(std::int64_t value) { return number(static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) { return number(static_cast<double>(value)); }
  bool number_float(double value, const std::string& /*text*/) { return number(value); }
  bool binary(Json::binary_t& /*value*/) { return false; }

  bool string(std::string& value) {
    if (in_event()) {
      if (key_ == "ph") event_.phase = value;
      if (key_ == "cat") event_.category = value;
      if (key_ == "name") event_.name = value;
    }
    if (path_.size() == 3 && path_[0] == "deviceProperties" && key_ == "name") {
      trace.product = value;
    }
    return true;
  }

  bool start_object(std::size_t /*size*/) { return open(); }
  bool start_array(std::size_t /*size*/) { return open(); }
  bool end_array() { return close(); }
  bool end_object() {
    if (in_event()) finish_event();
    return close();
  }
  bool key(std::string& name) {
    key_ = name;
    if (!path_.empty()) path_.back() = name;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*exception*/) {
    error = {fmt::format("byte {}", position),
             "found text that is not JSON; allowed: a trace of "
             "the PyTorch profiler, unpacked"};
    return false;
  }

 private:
  // Whether the open object is an element of the root's list traceEvents.
  bool in_event() const { return path_.size() == 3 && path_[0] == "traceEvents"; }

  bool number(double value) {
    if (in_event() && key_ == "ts") event_.begin = value;
    if (in_event() && key_ == "dur") {
      event_.duration = value;
      event_.timed = value >= 0 && value < kLatest;
    }
    if (path_.size() == 2 && path_[0] == "distributedInfo" && key_ == "rank" && value >= 0 &&
        value < 1e8) {
      trace.rank = static_cast<std::int64_t>(value);
    }
    return true;
  }

  bool open() {
    if (path_.size() >= kDeepestNesting) {
      error = {"", fmt::format("nested deeper than {} levels", kDeepestNesting)};
      return false;
    }
    path_.emplace_back();
    if (in_event()) event_ = {};
    return true;
  }
  bool close() {
    path_.pop_back();
    return true;
  }

  void finish_event() {
    trace.has_events = true;
    if (event_.phase != "X" || !event_.timed || !(std::abs(event_.begin) < kLatest)) return;
    const bool step = event_.name.starts_with("ProfilerStep#") &&
                      (event_.category == "user_annotation" || event_.category == "cpu_op");
    if (step && trace.steps.size() < kMostSteps) trace.steps.push_back(event_.duration);
    const bool kernel = event_.category == "kernel" || event_.category == "gpu_memcpy" ||
                        event_.category == "gpu_memset";
    if (!kernel) return;
    Sum& sum = trace.sums[kernel_kind(event_.name)];
    ++sum.kernels;
    sum.time += event_.duration;
    trace.first = std::min(trace.first, event_.begin);
    trace.last = std::max(trace.last, event_.begin + event_.duration);
  }

  std::vector<std::string> path_;
  std::string key_;
  KinetoEvent event_;
};

// A time, rounded to whole nanoseconds.
std::string seconds_text(double microseconds) {
  return format_quantity(std::round(microseconds * 1e3) / 1e9, Dimension::seconds);
}

Json document_of(const ForeignFile& file, const Trace& trace, const std::vector<double>& steps) {
  Json list = Json::array(), operations = Json::array();
  for (const double step : steps) list.push_back({{"time", seconds_text(step)}});
  std::vector<std::pair<std::string_view, Sum>> sums(trace.sums.begin(), trace.sums.end());
  std::ranges::stable_sort(
      sums, [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  const auto count = static_cast<double>(steps.size());
  for (const auto& [kind, sum] : sums) {
    operations.push_back({{"stage", 0},
                          {"operation", std::string(kind)},
                          {"tasks", std::max<std::int64_t>(
                                        1, std::llround(static_cast<double>(sum.kernels) / count))},
                          {"measured", seconds_text(sum.time / count)}});
  }
  return {{"trainyard", "profile/1"},
          {"name", file.stem},
          {"backend", "cuda"},
          {"steps", std::move(list)},
          {"ranks", Json::array({{{"rank", trace.rank.value_or(0)}, {"stage", 0}}})},
          {"operations", std::move(operations)}};
}

}  // namespace

std::string_view kernel_kind(std::string_view kernel) {
  const std::string name = in_small_letters(kernel);
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("flash") || has("fmha") || has("attention") || has("sdpa")) {
    return has("bwd") || has("backward") ? "attention backward" : "attention forward";
  }
  for (const Rule& rule : kRules) {
    if (has(rule.part)) return rule.kind;
  }
  return "other kernels";
}

Expected<Imported> import_kineto(const ForeignFile& file) {
  Handler handler;
  if (file.text.starts_with("\x1f\x8b")) {
    return file.error("found a packed file (gzip); allowed: the trace unpacked (gunzip)");
  }
  if (!Json::sax_parse(file.text, &handler)) {
    const Error& error = handler.error;
    return failure(error.where.empty() ? file.name : fmt::format("{}: {}", file.name, error.where),
                   error.message);
  }
  Trace& trace = handler.trace;
  if (!trace.has_events) {
    return file.error("found no \"traceEvents\"; allowed: a trace of the PyTorch profiler");
  }
  if (trace.sums.empty()) {
    return file.error("found no kernel; allowed: a trace with the activity CUDA");
  }
  Imported imported;
  std::vector<double> steps = trace.steps;
  if (steps.empty()) {
    steps.push_back(std::max(0.0, trace.last - trace.first));
    imported.assumptions.emplace_back(
        "one step: the trace has no ProfilerStep (call profiler.step())");
  }
  imported.assumptions.emplace_back(
      "stage 0: a trace does not say its pipeline stage; kernels are told apart by their names");
  double mean = 0;
  for (const double step : steps) mean += step / static_cast<double>(steps.size());
  imported.document = text_of(document_of(file, trace, steps));
  imported.summary =
      fmt::format("rank {}: {} step{} of {:.4g} ms · {} kinds of kernels", trace.rank.value_or(0),
                  steps.size(), steps.size() == 1 ? "" : "s", mean * 1e-3, trace.sums.size());
  return imported;
}

}  // namespace trainyard
