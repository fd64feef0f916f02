// The keys that a sweep is to vary and what each takes, as a table that is edited; with the
// settings beside it, the sweep as it is asked.
#pragma once

#include <QAbstractTableModel>
#include <QStringList>
#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/sweep/sweep_draft.h"

namespace trainyard {

// All that a worker needs to make the sweep.
struct SweepQuestion {
  std::string scenario;        // the document's text
  std::filesystem::path file;  // of the document
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
