// What layers that are repeated whole have beside the activations in flight. Backward passes run
// from the last layer of a chunk to the first: they come to the first ones, which are repeated,
// when nothing is left of the layers behind those.
#pragma once

#include <algorithm>

#include "model/units.h"

namespace trainyard {

// While a layer is repeated, beside all that is in flight: what is made again, less what repeating
// the layers behind it would have spared. Their inputs count as kept although they are gone too: so
// no number of repeated layers takes less than all of them, which searches rely on.
inline Bytes beside_kept(Bytes again, Bytes behind) { return std::max(Bytes(0), again - behind); }

}  // namespace trainyard
