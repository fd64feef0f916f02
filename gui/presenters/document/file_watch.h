// Tells when any program writes a file, whether in place or by renaming another file over it.
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

  // Watches this file instead of the one before; an empty path watches none.
  void watch(const std::filesystem::path& file);

 Q_SIGNALS:
  void written();

 private:
  using Stamp = std::pair<QDateTime, qint64>;  // time of the last write, size in bytes
  Stamp stamp() const;
  void look();

  QString file_;
  Stamp seen_;
  QFileSystemWatcher watcher_;
  QTimer settles_;
};

}  // namespace trainyard
