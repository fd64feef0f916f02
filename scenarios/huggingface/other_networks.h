// Networks whose configs name another, or none, and those that are no decoders of ours: by
// model_type, class and keys. Source: as scenarios/huggingface/architectures.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trainyard {

// Reasons that keys give too (scenarios/huggingface/unread_keys.cpp).
inline constexpr std::string_view kRecurrent = "recurrent or linear-attention layers";
inline constexpr std::string_view kSharedKeys = "keys and values that layers share";

// The model_type of a published network whose config has none, or another network's, by the class
// under `architectures` or an earlier model_type; empty: the model_type is right.
std::string_view type_of_class(std::string_view network_class);

// What a class is called without "ForCausalLM": the family whose model_type has these letters, else
// the letters, small; empty: it is no such class.
std::string family_of_class(std::string_view network_class);

// Why a network of this model_type is none of ours; empty: nothing is known against it.
std::string_view reason_to_refuse(std::string_view type);

// A key that only configs of other networks have (or have with another value than 0), and what it
// stands for.
struct ForeignKey {
  std::string_view key;
  std::string_view means;
};
std::span<const ForeignKey> foreign_keys();

}  // namespace trainyard
