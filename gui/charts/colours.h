// Colours of charts for a light and a dark desktop. A part of a step or of memory has the same
// colour wherever it is drawn; the key is that of documents.
#pragma once

#include <QColor>
#include <string_view>

class QPalette;
class QWidget;

namespace trainyard {

bool is_dark(const QPalette& palette);
QColor colour_of(std::string_view key, bool dark);
QColor grid_colour(const QPalette& palette);
QColor muted_text(const QPalette& palette);
QColor alarm_colour(const QPalette& palette);
// Black or white, whichever reads better on it.
QColor text_on(const QColor& background);

}  // namespace trainyard
