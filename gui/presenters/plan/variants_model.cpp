#include "gui/presenters/plan/variants_model.h"

#include <utility>

#include "gui/presenters/answer.h"
#include "gui/presenters/plan/plan_figures.h"

namespace trainyard {

void VariantsModel::set_now(const std::optional<Candidate>& candidate,
                            std::shared_ptr<const Question> question, PlanRequest request) {
  question_ = std::move(question);
  request_ = std::move(request);
  if (now_ && candidate) {  // not a reset, which would clear the selection
    now_ = candidate;
    Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
    return;
  }
  beginResetModel();
  now_ = candidate;
  endResetModel();
}

void VariantsModel::pin() {
  if (!now_) return;
  const int at = pinned();
  beginInsertColumns({}, at, at);
  pinned_.push_back({*now_, question_, request_, next_letter_++ % 26});
  endInsertColumns();
}

void VariantsModel::unpin(int column) {
  if (column < 0 || column >= pinned()) return;
  beginRemoveColumns({}, column, column);
  pinned_.erase(pinned_.begin() + column);
  endRemoveColumns();
}

void VariantsModel::clear() {
  beginResetModel();
  pinned_.clear();
  next_letter_ = 0;
  endResetModel();
}

void VariantsModel::mark(const std::function<Age(const std::shared_ptr<const Question>&)>& age_of) {
  for (Pinned& one : pinned_) one.age = age_of(one.question);
  if (!pinned_.empty()) Q_EMIT headerDataChanged(Qt::Horizontal, 0, pinned() - 1);
}

int VariantsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(plan_figures().size());
}

int VariantsModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : pinned() + (now_ ? 1 : 0);
}

QVariant VariantsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  const PlanFigure& figure = plan_figures()[static_cast<std::size_t>(index.row())];
  const Candidate& candidate = *column(index.column());
  const bool compared = index.column() > 0 && figure.kind != PlanFigure::Kind::key;
  const auto difference_of = figure.kind == PlanFigure::Kind::share ? points_text : difference_text;
  const QString difference =
      compared ? difference_of(figure.value(candidate), figure.value(*column(0))) : QString();
  const QString text = figure.shown(candidate);
  return difference.isEmpty() ? text : tr("%1 (%2)").arg(text, difference);
}

QVariant VariantsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Horizontal) return name_of(section);
  return plan_figures()[static_cast<std::size_t>(section)].shown_label();
}

const Candidate* VariantsModel::column(int index) const {
  return index < pinned() ? &at(index) : &*now_;
}

QString VariantsModel::name_of(int column) const {
  if (column >= pinned()) return tr("now");
  const Pinned& one = pinned_[static_cast<std::size_t>(column)];
  const QChar letter = QChar::fromLatin1(static_cast<char>('A' + one.letter));
  switch (one.age) {
    case Age::before_a_change:
      return tr("%1, before the last change").arg(letter);
    case Age::of_another_document:
      return tr("%1, of another scenario").arg(letter);
    case Age::present:
      break;
  }
  return letter;
}

}  // namespace trainyard
