#include "cli/improvement_text.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

Candidate lasting(double seconds) {
  Candidate candidate;
  candidate.estimate.step_time = Seconds(seconds);
  candidate.estimate.feasible = true;
  return candidate;
}

std::string words_of(double seconds) {
  return improvement_words({.candidate = lasting(seconds), .order = true}, lasting(2));
}

TEST(ImprovementWords, SayHowMuchShorterTheStepIs) {
  EXPECT_NE(words_of(1.5).find("(25.0 % less than plan 1)"), std::string::npos) << words_of(1.5);
}

// What is searched for the least memory may take longer.
TEST(ImprovementWords, SayHowMuchLongerTheStepIs) {
  EXPECT_NE(words_of(2.5).find("(25.0 % more than plan 1)"), std::string::npos) << words_of(2.5);
}

}  // namespace
}  // namespace trainyard
