// What nccl-tests prints (all_reduce_perf and its sisters, to 2.17), one run or several in a file:
// the curves of the collectives inside one node. Sizes and times are those of the out-of-place
// columns; the message counts as there (the buffer of an all-reduce, the whole of an all-gather and
// a reduce-scatter, one rank's of an all-to-all).
#pragma once

#include <string>
#include <string_view>

#include "scenarios/interchange/documents/foreign_file.h"
#include "scenarios/interchange/imported.h"
#include "scenarios/kernels/tables.h"

namespace trainyard {

struct NcclTests {
  KernelTable table;    // of collectives
  std::string product;  // "NVIDIA H100 80GB HBM3"; empty: not said
};
Expected<NcclTests> read_nccl_tests(const ForeignFile& file);

// A device/1 document with the curves fitted anew. `device`: a catalog name or a path; empty: the
// one that the file names. `date` goes into the provenance.
Expected<Imported> import_nccl_tests(const ForeignFile& file, const std::string& device,
                                     std::string_view date);

}  // namespace trainyard
