// Compares predictions with measured runs on a background thread. A file is a list of scenarios
// with measured step times, which are estimated here, or a profile of `trainyard run`, which holds
// predicted and measured times of a step and its operations.
#pragma once

#include <QAbstractTableModel>
#include <QObject>
#include <QString>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "gui/presenters/background.h"

namespace trainyard {

struct ValidationReport;
struct ValidationRow;

// What a row of a report compares: a measured run, or the step or one operation of a profile.
enum class MeasuredOf { run, step, operation };

struct CheckedRuns;

class AccuracyCheck : public QObject {
  Q_OBJECT
 public:
  explicit AccuracyCheck(QObject* parent = nullptr);
  ~AccuracyCheck() override;

  void start(std::vector<std::filesystem::path> files);
  void cancel() { work_.stop(); }
  bool busy() const { return work_.busy(); }
  // nullptr: there is no report yet.
  std::shared_ptr<const ValidationReport> report() const;
  std::vector<MeasuredOf> measured() const;  // one for each row of the report, in its order
  const QString& problem() const { return problem_; }
  QString summary() const;

 Q_SIGNALS:
  void started();
  void finished();

 private:
  void show(std::shared_ptr<const CheckedRuns> checked, const QString& problem);

  std::shared_ptr<const CheckedRuns> checked_;
  QString problem_;
  Background work_;
};

// The rows of a report as a table: the steps of profiles come first, then the other rows from the
// largest error down.
class AccuracyModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Role { sort_role = Qt::UserRole };

  explicit AccuracyModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
  void set_report(std::shared_ptr<const ValidationReport> report,
                  const std::vector<MeasuredOf>& measured);
  const ValidationRow& at(int row) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  std::shared_ptr<const ValidationReport> report_;
  std::vector<std::size_t> order_;
};

}  // namespace trainyard
