#include "planner/heterogeneous/baseline.h"

#include <utility>

#include "planner/findings/baseline.h"
#include "planner/heterogeneous/pricer.h"
#include "planner/heterogeneous/request.h"
#include "planner/heterogeneous/team.h"
#include "planner/request.h"

namespace trainyard {
namespace {

class AllAlike {
 public:
  AllAlike(const GroupedJob& job, const GroupSearchOptions& options, Members members)
      : job_(job), options_(options), members_(std::move(members)), all_(as_one()) {}

  // All nodes as if they were the first group's. Which group that is does not change which plans
  // are tried; whether a plan fits is asked of every group.
  const PreparedJob& nodes() const { return all_; }

  Evaluator evaluator() const {
    return [this](const Plan& plan, Estimate& result) {
      const auto priced = price(plan);
      result = {};
      result.feasible = priced && priced->feasible;
    };
  }

  Expected<GroupedPlan> price(const Plan& plan) const {
    const GroupUse use = members_.size() > 1 ? GroupUse::together : GroupUse::alone;
    return price_grouped(job_, {.use = use, .order = members_, .plan = request_of(plan)}, options_);
  }

 private:
  PreparedJob as_one() const {
    const GroupedJob team = job_of(job_, members_);
    return std::move(prepared_groups(team, {nodes_of_all(team)}).front());
  }

  const GroupedJob& job_;
  const GroupSearchOptions& options_;
  Members members_;
  PreparedJob all_;
};

}  // namespace

std::vector<GroupedBaseline> baselines_of(const GroupedJob& job,
                                          const GroupSearchOptions& options) {
  Members members = groups_that_compute(job);
  if (members.empty()) return {};
  const AllAlike alike(job, options, std::move(members));
  const PreparedJob& nodes = alike.nodes();
  const Evaluator evaluate = alike.evaluator();
  const auto priced = [&alike](std::string_view name, Expected<Candidate> found) {
    return GroupedBaseline{name, std::move(found).and_then([&alike](const Candidate& candidate) {
                             return alike.price(candidate.plan);
                           })};
  };
  return {priced(kRuleOfThumb, rule_of_thumb(nodes, {}, evaluate)),
          priced(kPlainDdp, data_parallel_only(nodes, 0, {}, evaluate)),
          priced(kPlainFsdp, data_parallel_only(nodes, 3, {}, evaluate))};
}

}  // namespace trainyard
