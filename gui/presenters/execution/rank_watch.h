// Finds the rank that keeps a run waiting, from the status that the ranks publish a few times a
// second. Each status of all ranks is a "look".
//
// A rank falls behind if it alone computed, and every other rank waited in a call, in at least 70 %
// of the looks of the last 5 s. If no rank has begun an operation for 5 s, the run stands still:
// the alert then names the rank that computes, or, if none does, the rank that has done least. If
// several ranks are equally far, the alert names no rank but says where they are.
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
  // Requires: `time`, in seconds of any clock, is not before that of the last look.
  void look(double time, std::vector<RankStatus> ranks);

  const std::vector<RankStatus>& ranks() const { return ranks_; }
  // The fraction of the last looks in which all other ranks waited for this one.
  double share(std::size_t rank) const;
  int behind() const { return behind_; }  // −1: none
  // A sentence that says what is wrong; empty: nothing is.
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
