// Where a rank is, in words, from its board.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/supervision/board.h"
#include "model/program/program.h"

namespace trainyard {

// What one operation of a rank's list does, such as "all-reduce of …"; for a number behind the last
// operation, that the rank is there.
std::string described_operation(const Program& program, const RankLayout& layout, int rank,
                                std::int64_t number);

// The operations that a rank is at: those that its device has under way; without a device, or
// before one has begun, the one handed over last. Empty: before the first operation.
std::vector<std::int64_t> operations_at(const BoardHead& head);

// Whether a rank computes: its device runs an operation that is not communication; or, without a
// device or with none under way, the rank itself is in no call that waits for others.
bool computes(const BoardHead& head);

using DescribeOperation = std::function<std::string(int rank, std::int64_t operation)>;
// "step 3, all-reduce of …, in all-reduce"; operations of several streams are joined by "and".
std::string place_of(const BoardHead& head, const DescribeOperation& describe);
// "rank 1 on host `happened`: step 3, all-reduce of …, in all-reduce".
std::string sentence_of(const BoardHead& head, std::string_view happened,
                        const DescribeOperation& describe);
// The `happened` of a rank that hangs.
std::string not_gone_on(Seconds timeout);

}  // namespace trainyard
