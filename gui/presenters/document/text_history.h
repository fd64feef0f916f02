// Undo and redo of a text, as a list of its states from the oldest on. The caller may join
// keystrokes that follow each other closely into one state. Beyond `most_bytes` the oldest states
// are forgotten, but never the present one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace trainyard {

class TextHistory {
 public:
  explicit TextHistory(std::string text = {}, std::size_t most_bytes = std::size_t{64} << 20)
      : states_{std::move(text)}, most_bytes_(most_bytes) {}

  const std::string& text() const { return states_[at_]; }
  // `joins`: replaces the present state instead of adding one. Ignored for the first state, and for
  // one after which there is something to redo.
  void add(std::string text, bool joins = false);
  bool can_undo() const { return at_ > 0; }
  bool can_redo() const { return at_ + 1 < states_.size(); }
  void undo() { at_ -= can_undo() ? 1 : 0; }
  void redo() { at_ += can_redo() ? 1 : 0; }

 private:
  void forget_oldest();

  std::vector<std::string> states_;
  std::size_t at_ = 0;
  std::size_t most_bytes_;
};

}  // namespace trainyard
