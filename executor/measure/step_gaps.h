// Finds the gaps between the operations of a rank's step: times in which nothing runs, on the whole
// rank and on each of its streams. A collective or a receive begins when its own rank is ready for
// it, so time spent waiting for other ranks inside one is no gap.
#pragma once

#include <vector>

#include "model/program/operation.h"

namespace trainyard {

// An operation as measured, in seconds since the step began.
struct TimedOperation {
  ProgramStream stream = ProgramStream::compute;
  bool communicates = false;
  Seconds begin, end;
};

// From the end of operation `after` to the begin of operation `before`, by their index in the list;
// -1: there is no gap.
struct StepGap {
  Seconds time;
  int after = -1, before = -1;
};

// Gaps of one stream between its first operation and its last; what lies outside them does not
// count.
struct StreamGaps {
  ProgramStream stream = ProgramStream::compute;
  Seconds all;
  Seconds communication;  // part of `all` in which the rank communicated on another stream
  StepGap longest;
};

struct StepGaps {
  Seconds all;  // time in which no operation of the rank ran
  StepGap longest;
  std::vector<StreamGaps> streams;  // those that have operations, in the order of ProgramStream
};

StepGaps gaps_of(const std::vector<TimedOperation>& operations);

}  // namespace trainyard
