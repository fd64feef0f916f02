#include "executor/setting.h"

#include <cmath>

namespace trainyard {
namespace {

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0;
  for (const char letter : name) hash = mixed(hash + static_cast<unsigned char>(letter));
  return hash;
}

double uniform(std::uint64_t x) {  // −1 … 1
  return static_cast<double>(mixed(x) >> 11) * 0x1p-52 - 1;
}

}  // namespace

double initial_weight(const Setting& setting, const WeightPlace& place) {
  const bool tied_head = setting.model.tied_embeddings && place.weight == "head weight";
  const std::string_view name = tied_head ? "embedding table" : place.weight;
  const bool vocabulary = name == "embedding table" || name == "head weight";
  if (vocabulary && place.row >= setting.model.vocabulary) return 0;
  std::uint64_t x = hash_of(name) + setting.seed;
  x = mixed(x + static_cast<std::uint64_t>(place.layer + 1));
  x = mixed(x + static_cast<std::uint64_t>(place.row));
  const double number = uniform(x + static_cast<std::uint64_t>(place.column));
  const double width = 1 / std::sqrt(static_cast<double>(setting.model.hidden_size));
  return name.ends_with("scale") ? 1 + 0.3 * number : width * number;
}

bool is_kept(const Setting& setting, const DropoutPlace& place) {
  std::uint64_t x = setting.seed + static_cast<std::uint64_t>(place.site);
  for (const std::int64_t next :
       {std::int64_t{place.layer}, place.sequence, place.row, place.column}) {
    x = mixed(x + static_cast<std::uint64_t>(next + 1));
  }
  return (uniform(x) + 1) / 2 >= kDropoutRate;
}

int token_at(const Setting& setting, std::int64_t sequence, std::int64_t position) {
  const std::uint64_t x =
      mixed(setting.seed + static_cast<std::uint64_t>(sequence * 1000003 + position));
  return static_cast<int>(x % static_cast<std::uint64_t>(setting.model.vocabulary));
}

int moments_of(const Setting& setting) {
  const std::string_view name = setting.training.optimizer.name;
  if (name == "adam" || name == "adamw") return 2;
  if (name == "sgd") return setting.descent.momentum == 0 ? 0 : 1;
  return -1;
}

}  // namespace trainyard
