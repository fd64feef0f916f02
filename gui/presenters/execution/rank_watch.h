// Who keeps a run waiting, from what its ranks publish a few times a second.
//
// A rank falls behind where in most of the looks of the last seconds it alone computed and every
// other rank waited in a call. Where no rank has begun an operation for some seconds, the one that
// computes is named, or else the one that has done least; where that is more than one, their place.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <deque>
#include <vector>

#include "scenarios/rank_status.h"

namespace trainyard {

class RankWatch {
  Q_DECLARE_TR_FUNCTIONS(RankWatch)
 public:
  // `time`: seconds of any clock, not before the last look's.
  void look(double time, std::vector<RankStatus> ranks);

  const std::vector<RankStatus>& ranks() const { return ranks_; }
  // Of the last looks, in how many the others waited for this rank.
  double share(std::size_t rank) const;
  int behind() const { return behind_; }  // −1: none
  // A sentence; empty: all is well.
  const QString& alert() const { return alert_; }

 private:
  struct Look {
    double time = 0;
    int waited_for = -1;  // −1: nobody, or more than one
  };
  void judge(double time);
  void judge_standstill(double seconds);

  std::vector<RankStatus> ranks_;
  std::deque<Look> looks_;
  double changed_ = 0;
  int behind_ = -1;
  QString alert_;
};

}  // namespace trainyard
