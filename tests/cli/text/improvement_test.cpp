#include "cli/text/improvement.h"

#include <gtest/gtest.h>

#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

Candidate lasting(double seconds) {
  Candidate candidate;
  candidate.estimate.step_time = Seconds(seconds);
  candidate.estimate.feasible = true;
  candidate.plan.schedule = find_schedule("1f1b");
  return candidate;
}

std::string words_of(double seconds) {
  return improvement_words({.candidate = lasting(seconds), .of = lasting(2).plan, .order = true},
                           {lasting(2)});
}

TEST(ImprovementWords, SayHowMuchShorterTheStepIs) {
  EXPECT_NE(words_of(1.5).find("(25.0 % less than plan 1)"), std::string::npos) << words_of(1.5);
}

TEST(ImprovementWords, NameThePlanThatWasChangedByItsPlaceInTheList) {
  Candidate other = lasting(3);
  other.plan.tensor_parallel = 2;
  const Improvement improvement{.candidate = lasting(1), .of = other.plan, .order = true};
  EXPECT_EQ(improvement_words(improvement, {lasting(2), other}).find("plan 2"), 0u);
  const std::string unlisted = improvement_words(improvement, {lasting(2)});
  EXPECT_EQ(unlisted.find("a plan that is not listed"), 0u) << unlisted;
}

TEST(ImprovementWords, NameTheScheduleThatIsFaster) {
  Improvement improvement{.candidate = lasting(1), .of = lasting(2).plan, .order = true};
  improvement.candidate.plan.schedule = find_schedule("interleaved-1f1b");
  improvement.candidate.plan.virtual_stages = 2;
  const std::string words = improvement_words(improvement, {lasting(2)});
  EXPECT_NE(words.find("schedule interleaved-1f1b with 2 chunks a stage"), std::string::npos)
      << words;
}

TEST(ImprovementWords, SayWhatWasMinimised) {
  const Improvement improvement{.candidate = lasting(1), .of = lasting(2).plan, .order = true};
  const std::string words = improvement_words(improvement, {lasting(2)}, "energy 3 kJ");
  EXPECT_NE(words.find(", energy 3 kJ, memory "), std::string::npos) << words;
}

// A plan with the least memory may take longer.
TEST(ImprovementWords, SayHowMuchLongerTheStepIs) {
  EXPECT_NE(words_of(2.5).find("(25.0 % more than plan 1)"), std::string::npos) << words_of(2.5);
}

}  // namespace
}  // namespace trainyard
