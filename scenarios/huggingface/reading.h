// A config while its network is read: what it says, what its family's class has by default, and the
// network so far.
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

// `tower`: it is a part of another config, and leaves out what its class has by default; a config
// on its own says its sizes.
struct Reading {
  HuggingFaceConfig& config;
  const Architecture& architecture;
  bool tower;
  Transformer& model;
  NetworkFacts facts;
  std::vector<std::string> of_class;  // "head_dim 256", …: defaults that were taken
  ExpertsRead experts = ExpertsRead::not_said;
};

inline bool is_known_family(const Reading& reading) { return !reading.architecture.type.empty(); }

// Takes a default of the class, and notes that it does.
int of_class(Reading& reading, std::string_view key, int value);

// A size at the first of the keys, which only a tower may leave to its class.
int read_size(Reading& reading, HuggingFaceConfig::Keys keys, int ClassSizes::*size,
              double most = 1e6);

// Heads and their norms, and the biases of all linear layers. Requires: hidden_size is read.
void read_attention(Reading& reading);
void read_biases(Reading& reading);

}  // namespace trainyard
