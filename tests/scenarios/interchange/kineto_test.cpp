#include "scenarios/interchange/kineto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/json/json_document.h"
#include "tests/scenarios/interchange/foreign.h"

namespace trainyard {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Two steps of 1 ms as PyTorch 2.x writes them. Nested arguments have keys with the same names.
const std::string kTrace = R"({
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
  "traceEvents": [
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 1, "tid": 1,
   "ts": 1000.0, "dur": 1000.0, "args": {"External id": 1}},
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#5", "pid": 1, "tid": 1,
   "ts": 2000.0, "dur": 1000.0},
  {"ph": "X", "cat": "kernel", "name": "nvjet_hsh_128x256_64x4_1x2_h_bz_TNT", "ts": 1100,
   "dur": 300, "args": {"device": 0, "stream": 7, "dur": 9999, "name": "memcpy"}},
  {"ph": "X", "cat": "kernel", "name": "nvjet_hsh_128x256_64x4_1x2_h_bz_TNT", "ts": 2100,
   "dur": 300},
  {"ph": "X", "cat": "kernel", "name": "void flash_bwd_kernel<...>", "ts": 1500, "dur": 50.5},
  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ts": 1600,
   "dur": 20},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1000, "dur": 900},
  {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}}
  ]})";

std::string kineto_refusal(const std::string& text) {
  return line_of(import_kineto(foreign(text)).error());
}

TEST(Kineto, AddsUpKernelsByWhatTheyDo) {
  const auto imported = import_kineto(foreign(kTrace));
  ASSERT_TRUE(imported.has_value()) << line_of(imported.error());
  const Json profile = parse_json(imported->document).value();
  EXPECT_EQ(profile["trainyard"], "profile/1");
  EXPECT_EQ(profile["ranks"][0]["rank"], 3);
  ASSERT_EQ(profile["steps"].size(), 2u);
  EXPECT_EQ(profile["steps"][0]["time"], "1 ms");
  const Json& operations = profile["operations"];
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[0]["operation"], "gemm");
  EXPECT_EQ(operations[0]["tasks"], 1);            // two kernels in two steps
  EXPECT_EQ(operations[0]["measured"], "300 us");  // 600 us in two steps
  EXPECT_EQ(operations[1]["operation"], "attention backward");
  EXPECT_EQ(operations[2]["operation"], "all-reduce");
  EXPECT_EQ(operations[2]["measured"], "10 us");
}

TEST(Kineto, TakesTheWholeTraceAsAStepWhereNoneIsMarked) {
  const auto imported = import_kineto(foreign(R"({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "a", "ts": 100, "dur": 10},
    {"ph": "X", "cat": "kernel", "name": "b", "ts": 150, "dur": 50}]})"));
  const Json profile = parse_json(imported->document).value();
  EXPECT_EQ(profile["steps"][0]["time"], "100 us");
  EXPECT_THAT(imported->assumptions, Contains(HasSubstr("no ProfilerStep")));
}

TEST(Kineto, TellsKernelsApart) {
  EXPECT_EQ(kernel_kind("sm90_xmma_gemm_bf16bf16_bf16f32"), "gemm");
  EXPECT_EQ(kernel_kind("void cutlass::device_kernel<flash::FlashAttnFwdSm90<...>>"),
            "attention forward");
  EXPECT_EQ(kernel_kind("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"), "reduce-scatter");
  EXPECT_EQ(kernel_kind("void at::native::vectorized_elementwise_kernel<4, ...>"), "element-wise");
  EXPECT_EQ(kernel_kind("my_kernel"), "other kernels");
}

TEST(Kineto, GivesOneLineForWhatIsNoTrace) {
  EXPECT_THAT(kineto_refusal(""), HasSubstr("found text that is not JSON"));
  EXPECT_THAT(kineto_refusal("{}"), HasSubstr("found no \"traceEvents\""));
  EXPECT_THAT(kineto_refusal(R"({"traceEvents": [{"ph": "X"}]})"), HasSubstr("found no kernel"));
  EXPECT_THAT(kineto_refusal("\x1f\x8b\x08"), HasSubstr("found a packed file"));
  EXPECT_THAT(kineto_refusal(std::string(100'000, '[')), HasSubstr("nested deeper than 64 levels"));
}

}  // namespace
}  // namespace trainyard
