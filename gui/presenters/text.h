// Text between the core (UTF-8 in std::string) and Qt (QString). Numbers and units are written by
// scenarios/text/readable.h, never by Qt, so that no locale changes them.
#pragma once

#include <QString>
#include <filesystem>
#include <string>
#include <string_view>

#include "model/expected.h"

namespace trainyard {

inline QString qt(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}
inline QString path_text(const std::filesystem::path& path) { return qt(path.string()); }
inline std::filesystem::path path_of(const QString& text) { return text.toStdString(); }

// The same text with no-break spaces between numbers and units, which wrapping must not part.
QString unbroken(QString text);

// An error in one line, as the command line prints it.
inline QString qt(const Error& error) {
  return qt(error.where.empty() ? error.message : error.where + ": " + error.message);
}

}  // namespace trainyard
