// How people read the figures of a sweep's points (scenarios/sweep/results/point_row.h): the name
// of each figure, and its values with their unit. `figure` is an index of kFigureNames.
#pragma once

#include <QString>
#include <cstddef>

namespace trainyard {

QString sweep_figure_name(std::size_t figure);
QString sweep_figure_text(std::size_t figure, double value);
double sweep_figure_unit(std::size_t figure);  // ticks of an axis are round multiples of it

}  // namespace trainyard
