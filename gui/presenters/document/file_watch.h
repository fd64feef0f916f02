// Tells when a file is written by anyone, in place or as another one renamed over it.
#pragma once

#include <QDateTime>
#include <QFileSystemWatcher>
#include <QObject>
#include <QTimer>
#include <filesystem>
#include <utility>

namespace trainyard {

class FileWatch : public QObject {
  Q_OBJECT
 public:
  explicit FileWatch(QObject* parent = nullptr);

  // Instead of the one before; empty: none.
  void watch(const std::filesystem::path& file);

 Q_SIGNALS:
  void written();

 private:
  using Stamp = std::pair<QDateTime, qint64>;  // when it was written, and its bytes
  Stamp stamp() const;
  void look();

  QString file_;
  Stamp seen_;
  QFileSystemWatcher watcher_;
  QTimer settles_;
};

}  // namespace trainyard
