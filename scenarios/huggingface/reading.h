// The state while a config is read: the config, the defaults of its family's class, and the network
// so far.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/workload/transformer.h"
#include "scenarios/huggingface/architectures.h"
#include "scenarios/huggingface/config.h"
#include "scenarios/huggingface/differences.h"
#include "scenarios/huggingface/unread_keys.h"

namespace trainyard {

// `tower`: the config is a part of another one. Only then may it leave sizes to the defaults of its
// class; a config on its own must state them.
struct Reading {
  HuggingFaceConfig& config;
  const Architecture& architecture;
  bool tower;
  Transformer& model;
  NetworkFacts facts;
  std::vector<std::string> of_class;  // defaults that were taken: "head_dim 256", …
  ExpertsRead experts = ExpertsRead::not_said;
};

inline bool is_known_family(const Reading& reading) { return !reading.architecture.type.empty(); }

// Returns `value`, a default of the class, and notes it.
int of_class(Reading& reading, std::string_view key, int value);

// The size at the first of the keys; only a tower may leave it to its class.
int read_size(Reading& reading, HuggingFaceConfig::Keys keys, int ClassSizes::*size,
              double most = 1e6);

// Read the heads with their norms, and the biases of all linear layers. Requires: hidden_size is
// read.
void read_attention(Reading& reading);
void read_biases(Reading& reading);

}  // namespace trainyard
