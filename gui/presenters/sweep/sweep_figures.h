// The figures of a sweep's points (scenarios/sweep/results/point_row.h) as people read them: what
// each is called, and its values with their unit.
#pragma once

#include <QString>
#include <cstddef>

namespace trainyard {

QString sweep_figure_name(std::size_t figure);
QString sweep_figure_text(std::size_t figure, double value);
double sweep_figure_unit(std::size_t figure);  // in which numbers of an axis are round

}  // namespace trainyard
