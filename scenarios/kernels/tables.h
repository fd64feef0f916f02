// Tables of measured kernels: one CSV file for each family, recognised by its header (the operator
// tables that NVIDIA publishes with aiconfigurator, nccl-tests' curves). A row that is not possible
// gives one error line: file and row (the header is row 1), column, what was found, what is
// allowed. Rows keep the order of the file, and none is left out.
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
  std::string file;  // as the caller named it
  const KernelFamily* family = nullptr;
  KernelSamples samples;
  std::string digest;  // of the file's bytes
};

// Identifies the data, for provenance: FNV-1a of the bytes, 64 bits, hexadecimal.
std::string digest_of(std::string_view text);

// A check of rows beyond their form. It is called with the rows before the first unreadable one, if
// there are any, so that the error always names the first bad row.
using RowCheck = std::function<Expected<void>(const KernelTable&)>;

Expected<KernelTable> read_kernel_table(const std::filesystem::path& file,
                                        const RowCheck& check = {});
// The same from text; errors call it `name`.
Expected<KernelTable> parse_kernel_table(std::string_view text, const std::string& name,
                                         const RowCheck& check = {});

}  // namespace trainyard
