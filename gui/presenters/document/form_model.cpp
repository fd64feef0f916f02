#include "gui/presenters/document/form_model.h"

#include <QStringList>
#include <algorithm>
#include <utility>

#include "gui/presenters/emphasis.h"
#include "gui/presenters/text.h"
#include "scenarios/form.h"

namespace trainyard {
namespace {

QStringList choices_of(const FormRow& row) {
  QStringList choices;
  for (const std::string& choice : row.choices) choices.append(qt(choice));
  return choices;
}

}  // namespace

FormModel::FormModel(QObject* parent)
    : QAbstractItemModel(parent), form_(std::make_unique<Form>()), children_(1) {}
FormModel::~FormModel() = default;

void FormModel::set_form(Form form) {
  if (!same_rows(form)) {
    beginResetModel();
    *form_ = std::move(form);
    problem_row_ = -1;
    find_children();
    endResetModel();
    return;
  }
  for (std::size_t i = 0; i < form.rows.size(); ++i) {
    FormRow& row = form_->rows[i];
    if (row.value == form.rows[i].value && row.present == form.rows[i].present) continue;
    row = std::move(form.rows[i]);
    const QModelIndex changed = index_of(row.pointer);
    Q_EMIT dataChanged(changed, changed.siblingAtColumn(value_column));
  }
}

void FormModel::set_problem(const std::string& pointer, const QString& message) {
  QModelIndex index;
  for (std::string at = pointer; !at.empty() && !index.isValid(); at.resize(at.rfind('/'))) {
    index = index_of(at);
  }
  const int before = std::exchange(problem_row_, index.isValid() ? int(index.internalId()) : -1);
  problem_ = message;
  for (const int row : {before, problem_row_}) {
    if (row < 0) continue;
    const QModelIndex changed = index_of(form_->rows[static_cast<std::size_t>(row)].pointer);
    Q_EMIT dataChanged(changed, changed.siblingAtColumn(value_column));
  }
}

QModelIndex FormModel::index_of(const std::string& pointer) const {
  const auto row = std::ranges::find(form_->rows, pointer, &FormRow::pointer);
  if (row == form_->rows.end()) return {};
  const auto at = static_cast<std::size_t>(row - form_->rows.begin());
  return createIndex(place_[at], key_column, static_cast<quintptr>(at));
}

QModelIndex FormModel::index(int row, int column, const QModelIndex& parent) const {
  if (!hasIndex(row, column, parent)) return {};
  const int child = children_of(parent)[static_cast<std::size_t>(row)];
  return createIndex(row, column, static_cast<quintptr>(child));
}

QModelIndex FormModel::parent(const QModelIndex& child) const {
  if (!child.isValid()) return {};
  const int parent = row_of(child).parent;
  if (parent < 0) return {};
  const auto at = static_cast<std::size_t>(parent);
  return createIndex(place_[at], key_column, static_cast<quintptr>(parent));
}

int FormModel::rowCount(const QModelIndex& parent) const {
  return parent.column() > key_column ? 0 : static_cast<int>(children_of(parent).size());
}

int FormModel::columnCount(const QModelIndex& /*parent*/) const { return columns; }

QVariant FormModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const FormRow& row = row_of(index);
  switch (role) {
    case pointer_role:
      return qt(row.pointer);
    case editor_role:
      return static_cast<int>(row.editor);
    case choices_role:
      return choices_of(row);
    case catalog_role:
      return qt(row.catalog);
    case muted_role:
      return !row.present;
    case problem_role:
      return int(index.internalId()) == problem_row_;
    case strong_role:
      return index.column() == key_column && (row.editor == FormEditor::section || row.required);
    case help_role:
    case Qt::ToolTipRole:
      return help(row);
    default:
      break;
  }
  if (index.column() == value_column) return value_data(row, role);
  return role == Qt::DisplayRole ? QVariant(qt(row.key)) : QVariant();
}

QVariant FormModel::value_data(const FormRow& row, int role) const {
  switch (role) {
    case Qt::DisplayRole:
    case Qt::AccessibleTextRole:
      return shown_value(row);
    case Qt::EditRole:
      return qt(row.value);
    default:
      return {};
  }
}

bool FormModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || index.column() != value_column) return false;
  const FormRow& row = row_of(index);
  const std::string text = value.toString().toStdString();
  if (text == row.value) return false;
  const std::string pointer = row.pointer;  // a copy: typed() may replace the form
  Q_EMIT typed(pointer, text);
  return true;
}

Qt::ItemFlags FormModel::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::NoItemFlags;
  const bool editable =
      index.column() == value_column && row_of(index).editor != FormEditor::section;
  return Qt::ItemIsEnabled | Qt::ItemIsSelectable |
         (editable ? Qt::ItemIsEditable : Qt::NoItemFlags);
}

QVariant FormModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == key_column ? tr("Key") : tr("Value");
}

const FormRow& FormModel::row_of(const QModelIndex& index) const {
  return form_->rows[static_cast<std::size_t>(index.internalId())];
}

const std::vector<int>& FormModel::children_of(const QModelIndex& parent) const {
  return children_[parent.isValid() ? static_cast<std::size_t>(parent.internalId()) + 1 : 0];
}

bool FormModel::same_rows(const Form& form) const {
  return std::ranges::equal(form_->rows, form.rows, [](const FormRow& a, const FormRow& b) {
    return a.pointer == b.pointer && a.editor == b.editor && a.parent == b.parent;
  });
}

void FormModel::find_children() {
  const std::vector<FormRow>& rows = form_->rows;
  children_.assign(rows.size() + 1, {});
  place_.assign(rows.size(), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<int>& siblings = children_[static_cast<std::size_t>(rows[i].parent + 1)];
    place_[i] = static_cast<int>(siblings.size());
    siblings.push_back(static_cast<int>(i));
  }
}

QString FormModel::shown_value(const FormRow& row) const {
  if (row.editor == FormEditor::section) return row.present ? QString() : tr("not there");
  if (row.present) return qt(row.value);
  if (row.required) return tr("needed");
  return row.absent.empty() ? QString() : tr("(%1)").arg(qt(row.absent));
}

QString FormModel::help(const FormRow& row) const {
  QString help = tr("%1: %2.").arg(qt(row.key), qt(row.doc));
  if (row.editor != FormEditor::section)
    help += QLatin1Char('\n') + tr("Allowed: %1.").arg(qt(row.allowed));
  if (!row.absent.empty()) help += QLatin1Char('\n') + tr("Absent: %1.").arg(qt(row.absent));
  const bool marked =
      problem_row_ >= 0 && &form_->rows[static_cast<std::size_t>(problem_row_)] == &row;
  return marked ? problem_ + QLatin1Char('\n') + help : help;
}

}  // namespace trainyard
