#include "gui/presenters/document/text_history.h"

#include <utility>

namespace trainyard {

void TextHistory::add(std::string text, bool joins) {
  if (text == states_[at_]) return;
  const bool newest = !can_redo();
  states_.resize(at_ + 1);
  if (joins && newest && at_ > 0) {
    states_.back() = std::move(text);
    return;
  }
  states_.push_back(std::move(text));
  ++at_;
  forget_oldest();
}

void TextHistory::forget_oldest() {
  std::size_t bytes = 0;
  for (std::size_t i = states_.size(); i-- > 0;) {
    bytes += states_[i].size();
    if (bytes <= most_bytes_ || i == at_) continue;
    const auto forgotten = i + 1;
    states_.erase(states_.begin(), states_.begin() + static_cast<std::ptrdiff_t>(forgotten));
    at_ -= forgotten;
    return;
  }
}

}  // namespace trainyard
