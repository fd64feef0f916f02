// Where a rank is, in words, from its board.
#pragma once

#include <functional>
#include <string>

#include "executor/board.h"
#include "model/program/program.h"

namespace trainyard {

// What one operation of a rank's list does: "all-reduce of …"; of a number beyond its end that it
// is.
std::string described_operation(const Program& program, const RankLayout& layout, int rank,
                                std::int64_t number);

using DescribeOperation = std::function<std::string(int rank, std::int64_t operation)>;
// "rank 1 on host `happened`: step 3, all-reduce of …, in all-reduce".
std::string sentence_of(const BoardHead& head, std::string_view happened,
                        const DescribeOperation& describe);
// What `happened` to a rank that hangs.
std::string not_gone_on(Seconds timeout);

}  // namespace trainyard
