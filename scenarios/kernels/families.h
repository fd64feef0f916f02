// The families of measured kernels, one entry each: how a row of the family's table is read, how a
// device's parameters are fitted to the rows, and how stored parameters are scored against them. A
// new family needs an entry, a sample type and a fit.
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

// A measured kernel and the prediction of the device's parameters.
struct ScoredKernel {
  Seconds measured;
  Seconds predicted;
  std::string group;        // rows with a common rate: a dtype, an operation; may be empty
  std::string_view region;  // class of size: "small", "memory-bound", "large", …
  // The time of an ideal device by its datasheet; the baseline beside the scores is fitted from it
  // and a launch. Absent if the datasheet has no such figure.
  std::optional<Seconds> ideal;
};

// Bounds on a sample's time by the device's datasheet.
struct KernelRoofs {
  std::optional<Dtype> dtype;  // that the device must have; none: no computation
  // A lower bound: its arithmetic at the peak rate, or what a device receives at its links'
  // bandwidth. Zero if the datasheet has no such figure.
  Seconds least;
  Seconds memory;  // its memory traffic at full bandwidth; no bound, as a cache may be faster
};

// Called with the share that is done.
using FitProgress = std::function<void(double)>;

struct KernelFamily {
  std::string_view name;
  std::string_view source;  // JSON pointer into a device document, where its provenance is
  std::span<const std::string_view> columns;
  // Appends a row to the samples; the first row of a table makes the list.
  void (*read)(KernelRow& row, KernelSamples& samples);
  // Replaces the family's parameters of `device` by those fitted to `samples`.
  Expected<void> (*fit)(Device& device, const KernelSamples& samples, const FitProgress& progress);
  // Scores each sample; the error says what the device lacks.
  Expected<std::vector<ScoredKernel>> (*score)(const Device& device, const KernelSamples& samples);
  std::vector<KernelRoofs> (*roofs)(const Device& device, const KernelSamples& samples);
  // One number for each sample, equal for rows of the same shape: cross-validation holds these back
  // together.
  std::vector<std::uint64_t> (*shapes)(const KernelSamples& samples);
  // Parts of its parameters that a table may lack. If a fit leaves one unchanged, what the document
  // says about that part's origin ("LABEL: …" between semicolons) stays.
  std::span<const std::string_view> untabled;
  // True: its parameters are of 16-bit kernels only, and times in other dtypes follow by the ratio
  // of their GEMM rates. False: each dtype has its own, or dtypes do not matter.
  bool one_rate = false;
};

std::span<const KernelFamily> kernel_families();

}  // namespace trainyard
