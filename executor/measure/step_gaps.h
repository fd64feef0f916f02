// What lies between the operations of a rank's step: the time in which nothing runs, of the rank
// and of each of its streams. What a rank waits for while an operation runs is not in it: a
// collective or a receive begins when its rank is ready for it.
#pragma once

#include <vector>

#include "model/program/operation.h"

namespace trainyard {

// An operation as measured, in seconds of the step.
struct TimedOperation {
  ProgramStream stream = ProgramStream::compute;
  bool communicates = false;
  Seconds begin, end;
};

// From the end of one operation to the begin of the next one, by their places in the list; -1:
// there is none.
struct StepGap {
  Seconds time;
  int after = -1, before = -1;
};

// Between the first operation of a stream and its last one: what lies before and after is none of
// the stream's gaps.
struct StreamGaps {
  ProgramStream stream = ProgramStream::compute;
  Seconds all;
  Seconds communication;  // of it: while the rank communicated on another stream
  StepGap longest;
};

struct StepGaps {
  Seconds all;  // in which no operation of the rank ran
  StepGap longest;
  std::vector<StreamGaps> streams;  // those that have operations, in the order of ProgramStream
};

StepGaps gaps_of(const std::vector<TimedOperation>& operations);

}  // namespace trainyard
