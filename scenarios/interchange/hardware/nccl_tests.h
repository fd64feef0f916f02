// The output of nccl-tests (all_reduce_perf and its sisters, up to 2.17), one run or several in a
// file: the curves of the collectives inside one node. Sizes and times are those of the
// out-of-place columns. The message counts as in nccl-tests: the buffer of an all-reduce, the whole
// of an all-gather or reduce-scatter, one rank's buffer of an all-to-all.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/interchange/documents/foreign_file.h"
#include "scenarios/interchange/imported.h"
#include "scenarios/kernels/tables.h"

namespace trainyard {

struct NcclTests {
  KernelTable table;    // of collectives
  std::string product;  // as the driver says, "NVIDIA H100 80GB HBM3"; "": absent
};
Expected<NcclTests> read_nccl_tests(const ForeignFile& file);

// A device/1 document with the curves fitted anew. `device`: a catalog name or a path; empty: the
// device that the file names. `date` goes into the provenance.
Expected<Imported> import_nccl_tests(const ForeignFile& file, const std::string& device,
                                     std::string_view date);

}  // namespace trainyard
