#include "cli/planner_run.h"

#include <utility>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "planner/findings/refusal.h"

namespace trainyard {

SearchResult run_search(const Question& question, SearchOptions options) {
  const InterruptGuard guard;
  Progress progress("searching");
  options.progress = [&progress](double fraction) { progress.show(fraction); };
  if (options.interrupted == nullptr) options.interrupted = interrupt_flag();
  return search(question.job, options, analytic_evaluator(question.job));
}

Error nothing_before_interruption(const std::filesystem::path& file) {
  return {file.string(), "interrupted before any plan that fits was found"};
}

Error nothing_before_time_limit(const std::filesystem::path& file) {
  return {file.string(), "the time limit came before any plan that fits was found"};
}

Expected<Candidate> best_candidate(const std::filesystem::path& file, const Question& question) {
  SearchOptions options = search_options(question.scenario);
  options.top = 1;
  SearchResult result = run_search(question, options);
  std::vector<Candidate>& found = result.plans_or_closest();
  if (found.empty()) {
    return failure(file.string(), none_is_legal(question.job, options.space, options.base));
  }
  return std::move(found.front());
}

Expected<Plan> plan_of(const std::filesystem::path& file, const Question& question) {
  if (question.scenario.plan) {
    return requested_plan(question.scenario, question.job).map_error([&](Error error) {
      return in_file(file, std::move(error));
    });
  }
  return best_candidate(file, question).map([](Candidate candidate) {
    return std::move(candidate.plan);
  });
}

}  // namespace trainyard
