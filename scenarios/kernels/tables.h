// Tables of measured kernels: one CSV file a family, told by its header (the operator tables that
// NVIDIA publishes with aiconfigurator, nccl-tests' curves). A row that cannot be is one error
// line: file and row (the header is row 1), column, what was found, what is allowed. Rows stand in
// the order of the file, none left out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "model/calibration/kernel_samples.h"
#include "model/expected.h"
#include "scenarios/kernels/families.h"

namespace trainyard {

struct KernelTable {
  std::string file;  // as it was named
  const KernelFamily* family = nullptr;
  KernelSamples samples;
  std::string digest;  // of the file's bytes
};

// Which data it was, for provenance: FNV-1a of the bytes, 64 bits, hexadecimal.
std::string digest_of(std::string_view text);

// What rows must be beyond their form. Called with those before the first that cannot be read, at
// least one, so that the first bad row is the one that an error names.
using RowCheck = std::function<Expected<void>(const KernelTable&)>;

Expected<KernelTable> read_kernel_table(const std::filesystem::path& file,
                                        const RowCheck& check = {});
// The same from text; `name` is what error lines call it.
Expected<KernelTable> parse_kernel_table(std::string_view text, const std::string& name,
                                         const RowCheck& check = {});

}  // namespace trainyard
