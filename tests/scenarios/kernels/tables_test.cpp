#include "scenarios/kernels/tables.h"

#include <gtest/gtest.h>

#include <string>

namespace trainyard {
namespace {

const std::string kGemmHead = "dtype,m,n,k,latency_us\n";

std::string table_error(const std::string& text) {
  const auto table = parse_kernel_table(text, "t.csv");
  return table ? "" : table.error().where + ": " + table.error().message;
}

TEST(KernelTable, IsToldByItsHeader) {
  const auto gemm = parse_kernel_table(kGemmHead + "fp8,64,128,256,10.5\r\n", "t.csv");
  ASSERT_TRUE(gemm.has_value());
  EXPECT_EQ(gemm->family->name, "gemm");
  const auto& rows = std::get<std::vector<GemmSample>>(gemm->samples);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].dtype, Dtype::fp8);
  EXPECT_EQ(rows[0].shape.n, 128);
  EXPECT_DOUBLE_EQ(rows[0].time.value(), 10.5e-6);
}

TEST(KernelTable, ReadsAWindowAsTheKeysThatAQuerySees) {
  const auto table = parse_kernel_table(
      "dtype,batch,seq,heads,kv_heads,head_dim,window,latency_us\n"
      "bfloat16,2,4096,32,8,128,128,99\nbfloat16,2,64,32,8,128,128,9\n",
      "t.csv");
  ASSERT_TRUE(table.has_value());
  const auto& rows = std::get<std::vector<AttentionSample>>(table->samples);
  EXPECT_TRUE(rows[0].shape.sliding);
  EXPECT_EQ(rows[0].shape.keys, 128);
  EXPECT_TRUE(rows[1].shape.sliding);  // shorter than its window, but the same kernel
  EXPECT_EQ(rows[1].shape.keys, 128);
}

TEST(KernelTable, ReadsExpertsAndCollectives) {
  const auto experts = parse_kernel_table(
      "dtype,tokens,hidden,ffn,topk,experts,tp,ep,distribution,latency_us\n"
      "bfloat16,64,4096,1536,8,128,1,4,power_law_1.2,2584.781\n",
      "t.csv");
  ASSERT_TRUE(experts.has_value());
  const ExpertSample row = std::get<std::vector<ExpertSample>>(experts->samples)[0];
  EXPECT_EQ(row.expert_parallel, 4);
  EXPECT_DOUBLE_EQ(row.skew, 1.2);
  const auto curve = parse_kernel_table("op,gpus,bytes,latency_us\nalltoall,8,1024,9\n", "t.csv");
  ASSERT_TRUE(curve.has_value());
  const CollectiveSample point = std::get<std::vector<CollectiveSample>>(curve->samples)[0];
  EXPECT_EQ(point.operation, CollectiveOperation::all_to_all);
  EXPECT_EQ(point.bytes, Bytes(1024));
}

TEST(KernelTable, SaysWhichRowAndColumnIsBad) {
  const std::string good = "fp8,64,128,256,10.5\n";
  EXPECT_EQ(table_error(kGemmHead + good + "fp8,64,128.5,256,10.5\n"),
            "t.csv: row 3: column n: found \"128.5\"; allowed: a whole number from 1 to "
            "1000000000000000");
  EXPECT_EQ(table_error(kGemmHead + "int3,64,128,256,10.5\n"),
            "t.csv: row 2: column dtype: found \"int3\"; allowed: bfloat16, float16, float32, fp8");
  EXPECT_EQ(table_error(kGemmHead + "fp8,64,128,256,-1\n"),
            "t.csv: row 2: column latency_us: found \"-1\"; allowed: microseconds from 0.1 to "
            "1000000000000");
  EXPECT_EQ(table_error(kGemmHead + "fp8,64,128,256,1.1e12\n"),
            "t.csv: row 2: column latency_us: found \"1.1e12\"; allowed: microseconds from 0.1 to "
            "1000000000000");
  EXPECT_EQ(table_error(kGemmHead + "fp8,64,9007199254740993,256,9\n"),
            "t.csv: row 2: column n: found \"9007199254740993\"; allowed: a whole number from 1 to "
            "1000000000000000");
  EXPECT_EQ(table_error(kGemmHead + good + "fp8,64,128,256\n"),
            "t.csv: row 3: found 4 columns (\"fp8,64,128,256\"); allowed: 5 "
            "(dtype,m,n,k,latency_us)");
}

// Groups of query heads of equal size share a key-value head.
TEST(KernelTable, NamesHeadsThatCannotShareTheirKeys) {
  const std::string head = "dtype,batch,seq,heads,kv_heads,head_dim,window,latency_us\n";
  EXPECT_EQ(table_error(head + "bfloat16,4,4096,8,8,128,0,500\nbfloat16,4,4096,8,1,128,0,500\n"),
            "");
  EXPECT_EQ(table_error(head + "bfloat16,4,4096,8,16,128,0,500\n"),
            "t.csv: row 2: column kv_heads: found \"16\"; allowed: a divisor of the 8 heads");
  EXPECT_EQ(table_error(head + "bfloat16,4,4096,8,3,128,0,500\n"),
            "t.csv: row 2: column kv_heads: found \"3\"; allowed: a divisor of the 8 heads");
  EXPECT_EQ(table_error(head + "bfloat16,4,4096,8,0,128,0,500\n"),
            "t.csv: row 2: column kv_heads: found \"0\"; allowed: a whole number from 1 to "
            "1000000000000000");
}

// A token goes to different experts; a rank holds whole experts, or whole columns of them.
TEST(KernelTable, NamesExpertsThatCannotBeShared) {
  const std::string head = "dtype,tokens,hidden,ffn,topk,experts,tp,ep,distribution,latency_us\n";
  EXPECT_EQ(table_error(head + "bfloat16,64,4096,1024,4,4,1,4,balanced,50\n"), "");
  EXPECT_EQ(
      table_error(head + "bfloat16,64,4096,1024,8,4,1,1,power_law_1.2,50\n"),
      "t.csv: row 2: column topk: found \"8\"; allowed: a whole number from 1 to the 4 experts");
  EXPECT_EQ(table_error(head + "bfloat16,64,4096,1024,8,16,1,32,balanced,50\n"),
            "t.csv: row 2: column ep: found \"32\"; allowed: a divisor of the 16 experts");
  EXPECT_EQ(table_error(head + "bfloat16,64,4096,1024,8,16,1,3,balanced,50\n"),
            "t.csv: row 2: column ep: found \"3\"; allowed: a divisor of the 16 experts");
  EXPECT_EQ(table_error(head + "bfloat16,64,4096,1024,8,16,3,1,balanced,50\n"),
            "t.csv: row 2: column tp: found \"3\"; allowed: a divisor of ffn, 1024");
  EXPECT_EQ(table_error(head + "bfloat16,64,4096,1024,8,2000000,1,1,balanced,50\n"),
            "t.csv: row 2: column experts: found \"2000000\"; allowed: a whole number from 1 to "
            "1000000");
}

// A load from memory takes at least 0.3 µs, so 1e-300 µs is a wrong column.
TEST(KernelTable, RefusesNumbersThatAreNoKernelsTime) {
  for (const std::string cell :
       {"", "nan", "inf", "1e400", "1 ", "0x10", "9,5", "1e-300", "0.09"}) {
    EXPECT_NE(table_error(kGemmHead + "fp8,64,128,256," + cell + "\n"), "") << cell;
  }
}

TEST(KernelTable, RefusesOtherHeadersAndEmptyTables) {
  EXPECT_TRUE(
      table_error("a,b\n1,2\n")
          .starts_with(
              "t.csv: row 1: found the header \"a,b\"; allowed: dtype,m,n,k,latency_us (gemm); "));
  EXPECT_EQ(table_error(kGemmHead), "t.csv: found no rows; allowed: one or more");
}

TEST(KernelTable, MayBeginWithAByteOrderMark) {
  const std::string rows = kGemmHead + "fp8,64,128,256,10.5\n";
  const auto plain = parse_kernel_table(rows, "t.csv");
  const auto marked = parse_kernel_table("\xEF\xBB\xBF" + rows, "t.csv");
  ASSERT_TRUE(marked) << marked.error().message;
  EXPECT_EQ(marked->family, plain->family);
  EXPECT_EQ(std::get<std::vector<GemmSample>>(marked->samples).size(), 1U);
}

// The FNV-1a digest of the text, computed by the reference implementation: fnv1a64("dtype,…") in
// Python.
TEST(KernelTable, CarriesADigestOfItsBytes) {
  const auto a = parse_kernel_table(kGemmHead + "fp8,64,128,256,10.5\n", "t.csv");
  EXPECT_EQ(a->digest, "6c2c786630b3d402");
}

}  // namespace
}  // namespace trainyard
