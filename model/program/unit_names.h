// Names of the blocks of each unit of the network. Internal to model/program.
#pragma once

#include <string_view>

namespace trainyard {

struct UnitNames {
  std::string_view forward, backward, input_gradient, weight_gradient, reduction, mirror, norm,
      update, gather;
};

inline constexpr UnitNames kLayerNames = {
    "layer forward",         "layer backward",           "layer input gradient",
    "layer weight gradient", "layer gradient reduction", "layer gradient mirror",
    "layer gradient norm",   "layer optimizer",          "layer weight gather"};
inline constexpr UnitNames kEmbeddingNames = {
    "embedding forward",         "embedding backward",           "embedding input gradient",
    "embedding weight gradient", "embedding gradient reduction", "embedding gradient mirror",
    "embedding gradient norm",   "embedding optimizer",          "embedding weight gather"};
inline constexpr UnitNames kHeadNames = {
    "head forward",         "head backward",           "head input gradient",
    "head weight gradient", "head gradient reduction", "head gradient mirror",
    "head gradient norm",   "head optimizer",          "head weight gather"};

inline constexpr UnitNames kMtpEmbeddingNames = {"mtp embedding forward",
                                                 "mtp embedding backward",
                                                 "mtp embedding input gradient",
                                                 "mtp embedding weight gradient",
                                                 "mtp embedding gradient reduction",
                                                 "mtp embedding gradient mirror",
                                                 "mtp embedding gradient norm",
                                                 "mtp embedding optimizer",
                                                 "mtp embedding weight gather"};

}  // namespace trainyard
