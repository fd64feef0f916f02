// The keys that a sweep varies and the values of each, as an editable table. SweepQuestion is the
// whole sweep: these axes with the other settings of the form, and the scenario that they vary.
#pragma once

#include <QAbstractTableModel>
#include <QStringList>
#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/sweep/sweep_draft.h"

namespace trainyard {

// Everything that a background thread needs to make the sweep.
struct SweepQuestion {
  std::string scenario;        // the document's text
  std::filesystem::path file;  // the document's file
  SweepDraft draft;
};

class SweepAxes : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { key_column, values_column, steps_column, scale_column, together_column, columns };
  enum Role { choices_role = Qt::UserRole };  // QStringList

  explicit SweepAxes(QObject* parent = nullptr);

  const std::vector<DraftAxis>& axes() const { return axes_; }
  void set_axes(std::vector<DraftAxis> axes);
  void add_axis();
  void remove_axis(int row);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  QVariant text_at(const DraftAxis& axis, int column, bool edited) const;
  QString help_of(const DraftAxis& axis, int column) const;
  bool checked(int row, int column) const;
  static bool shows_example(const DraftAxis& axis, int column);

  std::vector<DraftAxis> axes_;
  QStringList keys_;
};

}  // namespace trainyard
