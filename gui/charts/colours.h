// Colours of charts for a light and a dark desktop. A part of a step or of memory has the same
// colour in every chart. Its key is its name in documents, such as "tensor_parallel".
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
// The colour of text on `background`: black or white, whichever is easier to read.
QColor text_on(const QColor& background);

}  // namespace trainyard
