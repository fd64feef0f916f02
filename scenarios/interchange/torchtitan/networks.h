// The networks that torchtitan has by name and flavour, and the catalog's models of the same shape.
#pragma once

#include <array>
#include <string_view>

namespace trainyard {

struct TorchtitanNetwork {
  std::string_view name, flavour;
  std::string_view model;  // in the catalog
};

// torchtitan/models/*/__init__.py.
inline constexpr std::array kTorchtitanNetworks = {
    TorchtitanNetwork{"llama3", "8B", "llama-3.1-8b"},
    TorchtitanNetwork{"llama3", "70B", "llama-3.1-70b"},
    TorchtitanNetwork{"llama3", "405B", "llama-3.1-405b"},
    TorchtitanNetwork{"deepseek_v3", "16B", "deepseek-v2-lite"},
    TorchtitanNetwork{"deepseek_v3", "236B", "deepseek-v2"},
    TorchtitanNetwork{"deepseek_v3", "671B", "deepseek-v3"},
    TorchtitanNetwork{"qwen3", "0.6B", "qwen3-0.6b"},
    TorchtitanNetwork{"qwen3", "1.7B", "qwen3-1.7b"},
    TorchtitanNetwork{"qwen3", "4B", "qwen3-4b"},
    TorchtitanNetwork{"qwen3", "8B", "qwen3-8b"},
    TorchtitanNetwork{"qwen3", "14B", "qwen3-14b"},
    TorchtitanNetwork{"qwen3", "32B", "qwen3-32b"},
    TorchtitanNetwork{"qwen3", "30B-A3B", "qwen3-30b-a3b"},
    TorchtitanNetwork{"qwen3", "235B-A22B", "qwen3-235b-a22b"},
};

}  // namespace trainyard
