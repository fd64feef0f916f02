// The program of one rank, as a table and as rows of CSV.
#pragma once

#include <string>
#include <vector>

#include "cli/text/csv.h"
#include "cli/text/layout/style.h"
#include "model/program/program.h"
#include "model/program/rank_layout.h"

namespace trainyard {

struct RankProgram {
  const Program& program;
  const RankLayout& layout;
  int rank = 0;
};

std::string program_text(const RankProgram& of, const Style& style);
std::vector<CsvRow> program_rows(const RankProgram& of);

}  // namespace trainyard
