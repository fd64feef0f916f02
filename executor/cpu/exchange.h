// Carries out the collectives of a program by calls of a transport: decides which rows and parts go
// where.
#pragma once

#include "executor/cpu/kernels/kernels.h"
#include "executor/transport/transport.h"

namespace trainyard {

struct Exchange {
  const Operation& operation;
  Transport& transport;
  int members = 1;
  int self = 0;               // index of this rank among the members
  bool marks_unknown = true;  // Setting::marks_unknown
};

Expected<void> take_part(const Exchange& exchange, const Operands<float>& operands);

}  // namespace trainyard
