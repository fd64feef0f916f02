// A trace of the PyTorch profiler (Kineto's Chrome JSON, PyTorch 2.x: torch/profiler) as a
// profile/1 document: the times of kernels a step, summed by kind. The trace is read event by
// event, and only the sums are kept. Kernels do not name operations, so their kind is guessed from
// parts of their names; unknown ones are "other kernels".
#pragma once

#include <cstddef>
#include <string_view>

#include "scenarios/interchange/documents/foreign_file.h"
#include "scenarios/interchange/imported.h"

namespace trainyard {

inline constexpr std::size_t kLargestTrace = std::size_t{512} << 20;  // bytes

Expected<Imported> import_kineto(const ForeignFile& file);

// The kind of a kernel by its name: "gemm", "attention backward", "all-reduce", …
std::string_view kernel_kind(std::string_view kernel);

}  // namespace trainyard
