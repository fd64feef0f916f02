#include "gui/pages/answer_cards.h"

#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "gui/charts/colours.h"
#include "gui/presenters/text.h"

namespace trainyard {

AnswerCards::AnswerCards(QWidget* parent) : QWidget(parent) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
}

void AnswerCards::add_card() {
  auto* frame = new QFrame;
  frame->setFrameShape(QFrame::StyledPanel);
  auto* column = new QVBoxLayout(frame);
  column->setSpacing(1);
  Card card{frame, new QLabel, new QLabel, new QLabel};
  QFont large = card.value->font();
  large.setPointSizeF(large.pointSizeF() * 1.5);
  large.setBold(true);
  card.value->setFont(large);
  card.detail->setWordWrap(true);
  card.detail->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  card.detail->setMinimumHeight(2 * card.detail->fontMetrics().height());
  for (QLabel* label : {card.label, card.value, card.detail}) {
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    column->addWidget(label);
  }
  column->setStretchFactor(card.detail, 1);  // so that the values of all cards are level
  layout()->addWidget(frame);
  cards_.push_back(card);
}

void AnswerCards::show_lines(const std::vector<AnswerLine>& lines) {
  while (cards_.size() < lines.size()) add_card();
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    const Card& card = cards_[i];
    card.frame->setVisible(i < lines.size());
    if (i >= lines.size()) continue;
    card.label->setText(lines[i].label);
    card.value->setText(lines[i].value);
    card.detail->setText(unbroken(lines[i].detail));
    QPalette colours = palette();
    if (lines[i].is_bad) colours.setColor(QPalette::WindowText, alarm_colour(palette()));
    card.value->setPalette(colours);
    card.frame->setAccessibleName(lines[i].label + QLatin1Char(' ') + lines[i].value);
  }
}

}  // namespace trainyard
