// A document's form (scenarios/form.h) as a tree of keys and values. The model never changes the
// document: it emits typed(), its owner edits the text, and set_form() brings the new form.
#pragma once

#include <QAbstractItemModel>
#include <memory>
#include <string>
#include <vector>

namespace trainyard {

struct Form;
struct FormRow;

class FormModel : public QAbstractItemModel {
  Q_OBJECT
 public:
  enum Column { key_column, value_column, columns };
  enum Role {
    pointer_role = Qt::UserRole,  // JSON pointer
    editor_role,                  // int(FormEditor)
    choices_role,
    catalog_role,  // of a reference to the catalog: the kind of document
    help_role,     // what the key means, what is allowed, what its absence means
  };

  explicit FormModel(QObject* parent = nullptr);
  ~FormModel() override;

  // If the keys are the same as before, values change in place and unfolded rows stay unfolded.
  void set_form(Form form);
  // Marks the row at the pointer, or the nearest one above it, with the message. An empty message
  // clears the mark.
  void set_problem(const std::string& pointer, const QString& message);
  QModelIndex index_of(const std::string& pointer) const;

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& child) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 Q_SIGNALS:
  void typed(const std::string& pointer, const std::string& text);

 private:
  const FormRow& row_of(const QModelIndex& index) const;
  const std::vector<int>& children_of(const QModelIndex& parent) const;
  bool same_rows(const Form& form) const;
  void find_children();
  QVariant value_data(const FormRow& row, int role) const;
  QString shown_value(const FormRow& row) const;
  QString help(const FormRow& row) const;

  std::unique_ptr<Form> form_;
  std::vector<std::vector<int>> children_;  // [row + 1]; [0] is the document itself
  std::vector<int> place_;                  // [row]: its place among the rows of its section
  int problem_row_ = -1;
  QString problem_;
};

}  // namespace trainyard
