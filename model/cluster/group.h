// What a process group's members have between them: the α and B of its links, derived from the
// topology graph and the rank placement, with all sibling groups talking at the same time (so
// shared NICs and oversubscribed leaves are divided). Handbook §6, "which links".
#pragma once

#include "model/units.h"

namespace trainyard {

// The ranks {first + i·stride, i < size}. Every group of a plan has this form.
struct GroupShape {
  int stride = 1;
  int size = 1;
};

struct GroupLinks {
  int size = 1;              // n
  int ranks_per_domain = 1;  // r: members inside one NVLink domain
  int domains = 1;           // M = n / r (rounded up)
  BytesPerSecond inside;     // per member, to members of its own domain
  Seconds inside_latency;    // α of a step inside the domain
  BytesPerSecond across;     // per member: its share of its domain's way out
  Seconds across_latency;    // α of a step between domains
  bool switched = true;      // inside: a switch (NVSwitch) rather than a mesh or PCIe
};

}  // namespace trainyard
