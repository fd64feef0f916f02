// Where a rank is, in words, from its board.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/supervision/board.h"
#include "model/program/program.h"

namespace trainyard {

// What one operation of a rank's list does: "all-reduce of …"; of a number beyond its end that it
// is.
std::string described_operation(const Program& program, const RankLayout& layout, int rank,
                                std::int64_t number);

// Which operations a rank is at: what its device has under way; without one, or before it has
// begun, what was handed over last. Nothing: before its first.
std::vector<std::int64_t> operations_at(const BoardHead& head);

// Whether a rank does something by itself: its device is in an operation that is no communication;
// where none is under way, or without a device, the rank itself is in no call that waits for
// others.
bool computes(const BoardHead& head);

using DescribeOperation = std::function<std::string(int rank, std::int64_t operation)>;
// "step 3, all-reduce of …, in all-reduce"; "… and …" where streams are at several.
std::string place_of(const BoardHead& head, const DescribeOperation& describe);
// "rank 1 on host `happened`: step 3, all-reduce of …, in all-reduce".
std::string sentence_of(const BoardHead& head, std::string_view happened,
                        const DescribeOperation& describe);
// What `happened` to a rank that hangs.
std::string not_gone_on(Seconds timeout);

}  // namespace trainyard
