// How a cell of a table or tree stands out. The data of such a role is true or nothing; what it
// looks like is decided by the view (gui/pages/emphasis_delegate.h).
#pragma once

#include <Qt>

namespace trainyard {

enum EmphasisRole {
  strong_role = Qt::UserRole + 100,
  muted_role,    // an example, or a placeholder for an absent value
  problem_role,  // a value that is wrong
};

}  // namespace trainyard
