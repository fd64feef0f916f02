#include "simulator/life/checkpoints.h"

#include <algorithm>

namespace trainyard {
namespace {

constexpr std::uint64_t kLoadStream = 1000;  // apart from the streams of failures

}  // namespace

Checkpoints::Checkpoints(const LifeSettings& settings, std::uint64_t seed)
    : settings_(settings),
      random_(seed, kLoadStream),
      copy_(to_nanoseconds(settings.copy)),
      validation_(to_nanoseconds(settings.validation)) {
  shelves_.reserve(settings.tiers.size());
  for (const TierCost& tier : settings.tiers) {
    shelves_.push_back({.cost = tier,
                        .write = to_nanoseconds(tier.write),
                        .read = to_nanoseconds(tier.read),
                        .busy_until = Nanoseconds(0),
                        .copies = {},
                        .chain = 0});
  }
}

double Checkpoints::share(int chain) const { return chain > 0 ? settings_.incremental->share : 1; }

bool Checkpoints::writes(const Shelf& shelf, Nanoseconds now) const {
  return taken_ % shelf.cost.every == 0 && shelf.busy_until <= now;
}

Nanoseconds Checkpoints::write_time(const Shelf& shelf) const {
  return shelf.chain == 0 ? shelf.write : scaled(shelf.write, share(shelf.chain));
}

Nanoseconds Checkpoints::read_time(const Shelf& shelf, const Copy& copy) const {
  const double increments = copy.increments > 0 ? copy.increments * share(1) : 0;
  return scaled(shelf.read, 1 + increments) + validation_;
}

Nanoseconds Checkpoints::blocking(Nanoseconds now) const {
  Nanoseconds written{0};
  for (const Shelf& shelf : shelves_) {
    if (writes(shelf, now)) written += write_time(shelf);
  }
  const bool waits = settings_.mode == CheckpointMode::synchronous;
  return waits ? written : copy_ + scaled(written, settings_.interference);
}

void Checkpoints::put(Nanoseconds work, Nanoseconds now) {
  Nanoseconds usable = now;
  for (Shelf& shelf : shelves_) {
    if (!writes(shelf, now)) continue;
    if (settings_.mode == CheckpointMode::asynchronous) usable += write_time(shelf);
    shelf.busy_until = usable;
    shelf.copies.push_back({work, usable, shelf.chain});
    if (settings_.incremental) shelf.chain = (shelf.chain + 1) % settings_.incremental->full_every;
    discard(shelf);
  }
  ++taken_;
}

// Drops the checkpoints that are no longer kept: those before the full one that the oldest kept
// needs.
void Checkpoints::discard(Shelf& shelf) const {
  // One more than `keep` stays, because the newest may still be being written.
  const int beyond = static_cast<int>(shelf.copies.size()) - settings_.keep - 1;
  if (settings_.keep == 0 || beyond <= 0) return;
  const auto oldest = shelf.copies.begin() + beyond;
  shelf.copies.erase(shelf.copies.begin(), oldest - oldest->increments);
}

void Checkpoints::drop_unwritten(Nanoseconds now) {
  for (Shelf& shelf : shelves_) {
    while (!shelf.copies.empty() && shelf.copies.back().usable_from > now) shelf.copies.pop_back();
    shelf.busy_until = std::min(shelf.busy_until, now);
    shelf.chain = 0;
  }
}

void Checkpoints::lose_nodes(int nodes) {
  for (Shelf& shelf : shelves_) {
    if (shelf.cost.copies == 0 || nodes < shelf.cost.copies) continue;
    shelf.copies.clear();
    shelf.chain = 0;
  }
}

void Checkpoints::drop_after(Nanoseconds work) {
  for (Shelf& shelf : shelves_) {
    while (!shelf.copies.empty() && shelf.copies.back().work > work) shelf.copies.pop_back();
  }
}

Checkpoints::Shelf* Checkpoints::newest() {
  Shelf* best = nullptr;
  const auto better = [&best](const Shelf& shelf) {
    if (best == nullptr) return true;
    const Nanoseconds work = shelf.copies.back().work;
    const Nanoseconds known = best->copies.back().work;
    return work > known || (work == known && shelf.read < best->read);
  };
  for (Shelf& shelf : shelves_) {
    if (!shelf.copies.empty() && better(shelf)) best = &shelf;
  }
  return best;
}

Checkpoints::Loaded Checkpoints::load() {
  Loaded loaded;
  while (Shelf* shelf = newest()) {
    const Copy copy = shelf->copies.back();
    loaded.time += read_time(*shelf, copy);
    if (settings_.load_failure == 0 || random_.uniform() > settings_.load_failure) {
      loaded.work = copy.work;
      return loaded;
    }
    shelf->copies.pop_back();
    shelf->chain = 0;  // no increment is built on a refused checkpoint
  }
  return loaded;
}

}  // namespace trainyard
