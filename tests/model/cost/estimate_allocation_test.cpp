// The estimate's path allocates nothing once its result has been used before: counted by replacing
// the global allocation functions of this program.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "model/cost/estimate.h"
#include "tests/model/cost/example_jobs.h"

namespace {
long allocations =
    0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): what is counted
}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace trainyard {
namespace {

TEST(EstimateAllocation, NothingIsAllocatedOnceTheResultHasItsCapacity) {
  const PreparedJob job = gpt3_on_a100(256, 1536);
  const Plan plan = legal_plan(
      job, {.tensor_parallel = 8, .pipeline_parallel = 16, .virtual_stages = 3, .zero_stage = 1});
  Estimate out;
  const long before_first = allocations;
  estimate(job, plan, out);
  EXPECT_GT(allocations, before_first) << "the counter does not count";
  const long before = allocations;
  for (int i = 0; i < 100; ++i) estimate(job, plan, out);
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace trainyard
