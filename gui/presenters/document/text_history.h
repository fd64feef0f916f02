// Undo and redo of a text: its states, oldest first. Keystrokes that follow each other closely are
// one state. The oldest are forgotten beyond a number of bytes.
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
  // `joins`: the last state is replaced, where it is the newest and came about the same way.
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
