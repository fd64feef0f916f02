// The figures of an estimate in large type, side by side.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/presenters/answer.h"

class QLabel;

namespace trainyard {

class AnswerCards : public QWidget {
  Q_OBJECT
 public:
  explicit AnswerCards(QWidget* parent = nullptr);
  void show_lines(const std::vector<AnswerLine>& lines);

 private:
  struct Card {
    QWidget* frame;
    QLabel *label, *value, *detail;
  };
  void add_card();

  std::vector<Card> cards_;
};

}  // namespace trainyard
