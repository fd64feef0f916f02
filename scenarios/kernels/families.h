// The families of measured kernels, one entry each: how a row of its table is read, how a device's
// parameters are fitted to the rows, and how stored parameters are scored against them. A new
// family is an entry, a sample type and a fit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/calibration/kernel_samples.h"
#include "model/cluster/device.h"
#include "model/expected.h"
#include "scenarios/kernels/row.h"

namespace trainyard {

// A measured kernel beside what the parameters say.
struct ScoredKernel {
  Seconds measured;
  Seconds predicted;
  std::string group;        // rows that share a rate: a dtype, an operation; may be empty
  std::string_view region;  // of its size: "small", "memory-bound", "large", …
  // What an ideal device takes by its datasheet: of it and a launch is the baseline that scores
  // show. Absent where the datasheet has no such figure.
  std::optional<Seconds> ideal;
};

// What a sample takes at the device's datasheet.
struct KernelRoofs {
  std::optional<Dtype> dtype;  // that the device must have; none: it computes nothing
  // Its arithmetic at the peak, or what a device receives at its links' bandwidth: nothing is
  // faster. Zero where the datasheet has no such figure.
  Seconds least;
  Seconds memory;  // what it moves, which a cache may make faster
};

// Called with the fraction done.
using FitProgress = std::function<void(double)>;

struct KernelFamily {
  std::string_view name;
  std::string_view source;  // JSON pointer into a device document: where its provenance stands
  std::span<const std::string_view> columns;
  // Appends the row. The first row of a table starts the list.
  void (*read)(KernelRow& row, KernelSamples& samples);
  // Replaces the family's parameters of `device` by those fitted to `samples`.
  Expected<void> (*fit)(Device& device, const KernelSamples& samples, const FitProgress& progress);
  // One entry a sample; the error says what the device lacks.
  Expected<std::vector<ScoredKernel>> (*score)(const Device& device, const KernelSamples& samples);
  std::vector<KernelRoofs> (*roofs)(const Device& device, const KernelSamples& samples);
  // What cross-validation holds back together, one number a sample: rows of one shape.
  std::vector<std::uint64_t> (*shapes)(const KernelSamples& samples);
  // Parts of its parameters that a table may lack. What a document says of one's origin, "LABEL: …"
  // between semicolons, stays when the others are fitted.
  std::span<const std::string_view> untabled;
  // Its parameters are of 16-bit kernels alone; times in other dtypes follow by the ratio of their
  // GEMM rates. False: each dtype has its own, or there is none.
  bool one_rate = false;
};

std::span<const KernelFamily> kernel_families();

}  // namespace trainyard
