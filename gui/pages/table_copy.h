// Tables are copied as charts are: tab-separated, with the heads, as what is shown.
#pragma once

#include <QString>

class QTableView;

namespace trainyard {

// The rows that have something selected, all where none has.
QString table_text(const QTableView& table);
// By Ctrl+C the selected rows, by the menu the whole table too.
void make_copyable(QTableView& table);

}  // namespace trainyard
