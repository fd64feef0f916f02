#include "executor/setting.h"

#include <cmath>

namespace trainyard {
namespace {

std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0;
  for (const char letter : name) hash = mixed(hash + static_cast<unsigned char>(letter));
  return hash;
}

}  // namespace

WeightRow::WeightRow(const Setting& setting, const WeightPlace& place) {
  const bool tied_head = setting.model.tied_embeddings && place.weight == "head weight";
  const std::string_view name = tied_head ? "embedding table" : place.weight;
  const bool vocabulary = name == "embedding table" || name == "head weight";
  pads_ = vocabulary && place.row >= setting.model.vocabulary;
  scales_ = name.ends_with("scale");
  seed_ = mixed(hash_of(name) + setting.seed + static_cast<std::uint64_t>(place.layer + 1));
  seed_ = mixed(seed_ + static_cast<std::uint64_t>(place.row));
  width_ = 1 / std::sqrt(static_cast<double>(setting.model.hidden_size));
}

bool is_kept(const Setting& setting, const DropoutPlace& place) {
  return is_kept(setting.seed, place, kDropoutRate);
}

int token_at(const Setting& setting, std::int64_t sequence, std::int64_t position) {
  if (setting.tokens != nullptr) {
    const std::int64_t number = sequence * setting.training.sequence_length + position;
    const auto count = static_cast<std::int64_t>(setting.tokens->size());
    return static_cast<int>((*setting.tokens)[static_cast<std::size_t>(number % count)]);
  }
  const std::uint64_t x =
      mixed(setting.seed + static_cast<std::uint64_t>(sequence * 1000003 + position));
  return static_cast<int>(x % static_cast<std::uint64_t>(setting.model.vocabulary));
}

bool scales_loss(const Setting& setting) {
  return setting.training.precision.head_gemm == Dtype::fp16;
}

bool reads_cast(const Setting& setting, const Operation& operation, const ProgramBuffer& buffer) {
  const bool weight = buffer.role == BufferRole::weight || buffer.gathered;
  const bool moves = moves_bytes(operation.kind);
  return weight && buffer.part_of < 0 && buffer.dtype == Dtype::fp32 &&
         setting.training.precision.weight_bytes < 4 && operation.phase != Phase::update && !moves;
}

int moments_of(const Setting& setting) {
  const std::string_view name = setting.training.optimizer.name;
  if (name == "adam" || name == "adamw") return 2;
  if (name == "sgd") return setting.descent.momentum == 0 ? 0 : 1;
  return -1;
}

}  // namespace trainyard
