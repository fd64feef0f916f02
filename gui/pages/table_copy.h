// Copies tables like charts: tab-separated, with the column headings, as the text that is shown.
#pragma once

#include <QString>

class QTableView;

namespace trainyard {

// The rows with a selected cell, or all rows if nothing is selected.
QString table_text(const QTableView& table);
// Makes Ctrl+C copy the selected rows; the context menu can copy the whole table too.
void make_copyable(QTableView& table);

}  // namespace trainyard
