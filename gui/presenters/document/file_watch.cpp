#include "gui/presenters/document/file_watch.h"

#include <QFileInfo>

#include "gui/presenters/text.h"

namespace trainyard {
namespace {

constexpr int kSettled = 200;  // ms without a change, since a file may be written in parts

}  // namespace

FileWatch::FileWatch(QObject* parent) : QObject(parent) {
  settles_.setSingleShot(true);
  settles_.setInterval(kSettled);
  connect(&settles_, &QTimer::timeout, this, &FileWatch::look);
  const auto wait = [this] {
    if (stamp() != seen_) settles_.start();
  };
  connect(&watcher_, &QFileSystemWatcher::fileChanged, this, wait);
  connect(&watcher_, &QFileSystemWatcher::directoryChanged, this, wait);
}

// Watches the folder too: a file that is renamed over this one is a new file to the watcher.
void FileWatch::watch(const std::filesystem::path& file) {
  const QStringList before = watcher_.files() + watcher_.directories();
  if (!before.isEmpty()) watcher_.removePaths(before);
  settles_.stop();
  file_ = file.empty() ? QString() : QFileInfo(path_text(file)).absoluteFilePath();
  seen_ = stamp();
  if (!file_.isEmpty()) watcher_.addPaths({file_, QFileInfo(file_).absolutePath()});
}

FileWatch::Stamp FileWatch::stamp() const {
  const QFileInfo now(file_);
  return {now.lastModified(), now.size()};
}

void FileWatch::look() {
  if (!watcher_.files().contains(file_)) watcher_.addPath(file_);
  const Stamp before = std::exchange(seen_, stamp());
  if (seen_ != before) Q_EMIT written();
}

}  // namespace trainyard
