// A scenario of a transformer with four layers of hidden size 16, small enough to be executed in a
// test.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/cli/program.h"

namespace trainyard {

// `plan` is the content of the section "plan". `model` adds fields to the section "model" and
// begins with a comma.
inline std::string tiny_scenario(const std::string& plan, int devices,
                                 const std::string& model = "") {
  return write_scratch("tiny.json", fmt::format(R"({{
    "trainyard": "scenario/1", "name": "tiny",
    "model": {{ "layers": 4, "hidden_size": 16, "attention_heads": 4, "kv_heads": 2, "head_dim": 4,
               "ffn_size": 24, "vocabulary": 29{} }},
    "cluster": {{ "device": "h100-sxm-80gb", "devices_per_node": {}, "nodes": 1,
                 "intra_node": {{ "kind": "nvswitch", "bandwidth": "450 GB/s" }} }},
    "training": {{ "global_batch": 8, "sequence_length": 8, "precision": "fp32",
                  "optimizer": "adam", "stack": "megatron-core" }},
    "plan": {{ {} }} }})",
                                                model, devices, plan))
      .string();
}

}  // namespace trainyard
