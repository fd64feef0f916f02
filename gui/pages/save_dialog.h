// Asks where to save a file. A name without the ending of an offered type gets the ending of the
// chosen type, and only then is the user asked whether to replace an existing file.
#pragma once

#include <QString>
#include <filesystem>

class QWidget;

namespace trainyard {

struct SaveQuestion {
  QString title;
  QString name;          // the proposed name
  QString types;         // "Trace (*.json);;Picture (*.png)"
  bool goes_on = false;  // an existing file is continued, not replaced
};

// Empty: the user chose no file.
std::filesystem::path ask_where_to_save(QWidget* parent, const SaveQuestion& question);

// The name with the first ending of `type`, unless it already has an ending of one of `types`.
QString with_ending(const QString& name, const QString& type, const QString& types);

}  // namespace trainyard
