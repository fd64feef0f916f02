// How a cell of any table or tree stands out, as roles that hold true or nothing: what that looks
// like is the view's business (gui/pages/emphasis_delegate.h).
#pragma once

#include <Qt>

namespace trainyard {

enum EmphasisRole {
  strong_role = Qt::UserRole + 100,
  muted_role,    // an example, or what stands where nothing is
  problem_role,  // wrong
};

}  // namespace trainyard
