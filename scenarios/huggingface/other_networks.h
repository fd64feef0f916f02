// Configs without a model_type or with another network's, and networks that are not supported, told
// by model_type, class and keys. Source: as scenarios/huggingface/architectures.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trainyard {

// Reasons to refuse a network, which unread keys give as well
// (scenarios/huggingface/unread_keys.cpp).
inline constexpr std::string_view kRecurrent = "recurrent or linear-attention layers";
inline constexpr std::string_view kSharedKeys = "keys and values that layers share";

// The right model_type for a published network whose config has none or another network's, by the
// class under `architectures` or an earlier model_type; empty: the model_type is right.
std::string_view type_of_class(std::string_view network_class);

// The family of a class "…ForCausalLM" or "…LMHeadModel": the known model_type with the letters of
// "…", else these letters in lower case; empty: another kind of class.
std::string family_of_class(std::string_view network_class);

// Why a network of this model_type is not supported; empty: no reason is known.
std::string_view reason_to_refuse(std::string_view type);

// A key that only configs of unsupported networks have (or have with a value other than 0), and
// what it means.
struct ForeignKey {
  std::string_view key;
  std::string_view means;
};
std::span<const ForeignKey> foreign_keys();

}  // namespace trainyard
