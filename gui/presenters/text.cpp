#include "gui/presenters/text.h"

#include <QRegularExpression>

namespace trainyard {

QString unbroken(QString text) {
  static const QRegularExpression before_unit(QStringLiteral(
      "(?<=[0-9]) (?=(?:%|×|USD|days|min|h|[µnm]?s|[kMGT]?i?B(?:/s)?|[KMGTP]iB|[kMGT]?Wh|[kMGT]?J|"
      "[kMGTP]?FLOP/s|[kMGT])(?![A-Za-z0-9]))"));
  static const QRegularExpression a_second(QStringLiteral("(?<=[BP])/s(?![A-Za-z])"));
  text.replace(before_unit, QString(QChar::Nbsp));
  return text.replace(a_second, QStringLiteral("/\u2060s"));
}

}  // namespace trainyard
