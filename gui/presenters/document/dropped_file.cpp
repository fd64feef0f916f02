#include "gui/presenters/document/dropped_file.h"

#include <QByteArray>
#include <QFile>
#include <QFileInfo>

#include "gui/presenters/text.h"

namespace trainyard {

DroppedFile dropped_file(const std::filesystem::path& file) {
  constexpr qint64 kHead = 64 << 10;  // bytes
  if (file.extension() == ".sqlite") return DroppedFile::sweep_results;
  QFile begin(path_text(file));
  // Opening a FIFO would block.
  if (!QFileInfo(begin).isFile() || !begin.open(QIODevice::ReadOnly)) return DroppedFile::document;
  const QByteArray head = begin.read(kHead).trimmed();
  if (head.contains("\"traceEvents\"")) return DroppedFile::trace;
  if (head.contains("\"sweep/1\"")) return DroppedFile::sweep;
  const bool is_list = head.startsWith('[');
  return is_list || head.contains("\"profile/1\"") ? DroppedFile::measured_runs
                                                   : DroppedFile::document;
}

}  // namespace trainyard
