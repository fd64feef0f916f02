// Asks where to save. A name without the ending of a type that is offered gets that of the type
// that was chosen, before it is asked whether an existing file is to be replaced.
#pragma once

#include <QString>
#include <filesystem>

class QWidget;

namespace trainyard {

struct SaveQuestion {
  QString title;
  QString name;          // proposed
  QString types;         // "Trace (*.json);;Picture (*.png)"
  bool goes_on = false;  // an existing file is continued, not replaced
};

// Empty: none was chosen.
std::filesystem::path ask_where_to_save(QWidget* parent, const SaveQuestion& question);

// The name with the first ending of `type`, unless it has one of `types`.
QString with_ending(const QString& name, const QString& type, const QString& types);

}  // namespace trainyard
