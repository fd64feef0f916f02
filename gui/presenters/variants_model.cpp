#include "gui/presenters/variants_model.h"

#include "gui/presenters/answer.h"
#include "gui/presenters/text.h"
#include "scenarios/readable.h"

namespace trainyard {
namespace {

struct Figure {
  const char* label;
  double (*value)(const Candidate& candidate);
  std::string (*text)(double value);
};

std::string seconds_text(double value) { return with_unit(Seconds(value)); }
std::string bytes_text(double value) { return with_unit(Bytes(value)); }
std::string share_text(double value) { return percent(value) + " %"; }
std::string dollars_text(double value) { return value > 0 ? number(value) + " USD" : "unknown"; }
std::string energy_text(double value) { return value > 0 ? with_unit(Joules(value)) : "unknown"; }
std::string whole_text(double value) { return count(static_cast<std::int64_t>(value)); }

constexpr Figure kFigures[] = {
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Step time"),
     [](const Candidate& c) { return c.estimate.step_time.value(); }, seconds_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "MFU"),
     [](const Candidate& c) { return c.estimate.mfu; }, share_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Tokens a second"),
     [](const Candidate& c) { return c.estimate.tokens_per_second; }, short_scale},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Peak memory"),
     [](const Candidate& c) { return c.estimate.peak_memory.value(); }, bytes_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Cost of a step"),
     [](const Candidate& c) { return c.estimate.cost_per_step.value_or(Dollars(0)).value(); },
     dollars_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Energy of a step"),
     [](const Candidate& c) { return c.estimate.energy_per_step.value_or(Joules(0)).value(); },
     energy_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Bubble"),
     [](const Candidate& c) { return c.estimate.breakdown.bubble.value(); }, seconds_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Tensor parallel"),
     [](const Candidate& c) { return double(c.plan.tensor_parallel); }, whole_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Context parallel"),
     [](const Candidate& c) { return double(c.plan.context_parallel); }, whole_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Pipeline stages"),
     [](const Candidate& c) { return double(c.plan.pipeline_parallel); }, whole_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Virtual stages"),
     [](const Candidate& c) { return double(c.plan.virtual_stages); }, whole_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Data parallel"),
     [](const Candidate& c) { return double(c.plan.data_parallel); }, whole_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Expert parallel"),
     [](const Candidate& c) { return double(c.plan.expert_parallel); }, whole_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "Micro-batch"),
     [](const Candidate& c) { return double(c.plan.micro_batch); }, whole_text},
    {QT_TRANSLATE_NOOP("trainyard::VariantsModel", "ZeRO stage"),
     [](const Candidate& c) { return double(c.plan.zero_stage); }, whole_text},
};
constexpr int kFirstKey = 7;  // from here on keys of the plan: no difference in percent

}  // namespace

void VariantsModel::set_now(const std::optional<Candidate>& candidate) {
  if (now_ && candidate) {  // what is selected stays so
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
  pinned_.push_back(*now_);
  letters_.push_back(next_letter_++ % 26);
  endInsertColumns();
}

void VariantsModel::unpin(int column) {
  if (column < 0 || column >= pinned()) return;
  beginRemoveColumns({}, column, column);
  pinned_.erase(pinned_.begin() + column);
  letters_.erase(letters_.begin() + column);
  endRemoveColumns();
}

void VariantsModel::clear() {
  beginResetModel();
  pinned_.clear();
  letters_.clear();
  next_letter_ = 0;
  endResetModel();
}

int VariantsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(std::size(kFigures));
}

int VariantsModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : pinned() + (now_ ? 1 : 0);
}

QVariant VariantsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  const Figure& figure = kFigures[index.row()];
  const double value = figure.value(*column(index.column()));
  const double first = figure.value(*column(0));
  const QString difference =
      index.column() > 0 && index.row() < kFirstKey ? difference_text(value, first) : QString();
  const QString text = qt(figure.text(value));
  return difference.isEmpty() ? text : tr("%1 (%2)").arg(text, difference);
}

QVariant VariantsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  return orientation == Qt::Horizontal ? name_of(section) : tr(kFigures[section].label);
}

const Candidate* VariantsModel::column(int index) const {
  return index < pinned() ? &pinned_[static_cast<std::size_t>(index)] : &*now_;
}

QString VariantsModel::name_of(int column) const {
  if (column >= pinned()) return tr("now");
  return QChar::fromLatin1(static_cast<char>('A' + letters_[static_cast<std::size_t>(column)]));
}

}  // namespace trainyard
