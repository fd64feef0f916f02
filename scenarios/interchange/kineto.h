// A trace of the PyTorch profiler (Kineto's Chrome JSON, PyTorch 2.x: torch/profiler) as a
// profile/1 document: kernels added up by what they do, a step each. The trace is read event by
// event; only the sums are kept. Kernels have no names of operations: they are told apart by parts
// of their names, and what is not known is "other kernels".
#pragma once

#include <cstddef>
#include <string_view>

#include "scenarios/interchange/documents/foreign_file.h"
#include "scenarios/interchange/imported.h"

namespace trainyard {

inline constexpr std::size_t kLargestTrace = std::size_t{512} << 20;  // bytes

Expected<Imported> import_kineto(const ForeignFile& file);

// "gemm", "attention backward", "all-reduce", …
std::string_view kernel_kind(std::string_view kernel);

}  // namespace trainyard
