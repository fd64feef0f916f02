// Rows that a device cannot have by its datasheet. An A100 has 312 TFLOP/s in bf16, 2,039 GB/s of
// memory and 300 GB/s of NVLink per direction (vendor's figures); the times below follow by hand.
#include "scenarios/kernels/limits.h"

#include <gtest/gtest.h>

#include <string>

#include "scenarios/machine/device_document.h"

namespace trainyard {
namespace {

const std::string kAttention = "dtype,batch,seq,heads,kv_heads,head_dim,window,latency_us\n";
const std::string kExperts = "dtype,tokens,hidden,ffn,topk,experts,tp,ep,distribution,latency_us\n";

Device a100() { return read_device("a100-sxm-80gb", "test").value().device; }

std::string row_error(const Device& device, const std::string& text) {
  const auto table = parse_kernel_table(text, "t.csv");
  EXPECT_TRUE(table.has_value()) << text;
  const auto checked = check_rows(device, table.value());
  return checked ? "" : checked.error().where + ": " + checked.error().message;
}

// 2 · 4096³ FLOP take 440.5 µs at the peak, and 367.1 at 1.2 times the peak.
TEST(KernelLimits, NameTheRowThatMultipliesFasterThanThePeak) {
  const std::string rows = "dtype,m,n,k,latency_us\nbfloat16,4096,4096,4096,370\n";
  EXPECT_EQ(row_error(a100(), rows), "");
  EXPECT_EQ(
      row_error(a100(), rows + "bfloat16,4096,4096,4096,364.5\n"),
      "t.csv: row 3: column latency_us: found 364.5; allowed: from 367.1, 1.2 times as fast as "
      "the datasheet of a100-sxm-80gb");
}

// A score takes 4 · 32 · 128 FLOP over all heads. A causal mask leaves 4096 · 4097 / 2 scores per
// head, 440.6 µs / 1.2; a window of 128 leaves 4096 · 128 − 128 · 127 / 2, 27.1 µs / 1.2.
TEST(KernelLimits, CountTheScoresThatAMaskLeaves) {
  EXPECT_EQ(row_error(a100(), kAttention + "bfloat16,1,4096,32,8,128,0,368\n"), "");
  EXPECT_NE(row_error(a100(), kAttention + "bfloat16,1,4096,32,8,128,0,366\n"), "");
  EXPECT_EQ(row_error(a100(), kAttention + "bfloat16,1,4096,32,8,128,128,23\n"), "");
  EXPECT_NE(row_error(a100(), kAttention + "bfloat16,1,4096,32,8,128,128,22\n"), "");
}

// 4096 tokens go to 8 experts each over 4 ranks: 8192 rows · 6 · 4096 · 1536 FLOP, 991.1 µs / 1.2.
TEST(KernelLimits, CountTheRowsOfAnEvenRank) {
  const std::string head = kExperts + "bfloat16,4096,4096,1536,8,128,1,4,balanced,";
  EXPECT_EQ(row_error(a100(), head + "827\n"), "");
  EXPECT_NE(row_error(a100(), head + "825\n"), "");
}

// Seven of eight parts of 1 GiB come from other devices: 3,132 µs / 1.2.
TEST(KernelLimits, CountWhatComesOverTheLinks) {
  const std::string head = "op,gpus,bytes,latency_us\n";
  for (const std::string operation : {"all_reduce", "all_gather", "reduce_scatter", "alltoall"}) {
    EXPECT_EQ(row_error(a100(), head + operation + ",8,1073741824,2611\n"), "") << operation;
    EXPECT_NE(row_error(a100(), head + operation + ",8,1073741824,2608\n"), "") << operation;
  }
}

// The upper limit is a thousand times 440.5 µs of arithmetic and a launch of 10.
TEST(KernelLimits, NameTheRowThatIsSlowerThanAnythingADeviceRuns) {
  const std::string rows = "dtype,m,n,k,latency_us\nbfloat16,4096,4096,4096,450000\n";
  EXPECT_EQ(row_error(a100(), rows), "");
  EXPECT_EQ(row_error(a100(), rows + "bfloat16,4096,4096,4096,999999999\n"),
            "t.csv: row 3: column latency_us: found 999999999; allowed: to 450509, 1000 times what "
            "a launch of 10 us and the datasheet of a100-sxm-80gb come to");
}

// One query in each of 65,536 sequences: 2 · 65536 · (96 + 8) · 128 elements of 2 bytes take 1,711
// µs, the arithmetic takes 10.
TEST(KernelLimits, CountWhatIsMovedWhereThatTakesLonger) {
  const std::string row = kAttention + "bfloat16,65536,1,96,8,128,0,";
  EXPECT_EQ(row_error(a100(), row + "1720000\n"), "");
  EXPECT_NE(row_error(a100(), row + "1723000\n"), "");
}

TEST(KernelLimits, NameTheRowInADtypeThatTheDeviceDoesNotHave) {
  EXPECT_EQ(
      row_error(a100(), "dtype,m,n,k,latency_us\nbfloat16,4096,4096,4096,500\nfp8,64,64,64,9\n"),
      "t.csv: row 3: column dtype: found \"fp8\"; allowed: bfloat16, float16, float32, the dtypes "
      "of a100-sxm-80gb");
}

// One set of parameters describes the 16-bit kernels. Rows in fp8 would make those as fast.
TEST(KernelLimits, NameTheRowInADtypeThatItsFamilyIsNotFittedIn) {
  const Device h100 = read_device("h100-sxm-80gb", "test").value().device;
  const std::string allowed =
      "; allowed: bfloat16, float16, of whose times those of other dtypes are made, on "
      "h100-sxm-80gb";
  const std::string attention = ",1,4096,32,8,128,0,900\n";
  const std::string experts = ",4096,4096,1536,8,128,1,4,balanced,900\n";
  EXPECT_EQ(row_error(h100, kAttention + "bfloat16" + attention + "float16" + attention), "");
  EXPECT_EQ(row_error(h100, kExperts + "bfloat16" + experts + "float16" + experts), "");
  for (const std::string dtype : {"fp8", "float32"}) {
    const std::string found = "t.csv: row 3: column dtype: found \"" + dtype + "\"" + allowed;
    EXPECT_EQ(row_error(h100, kAttention + "bfloat16" + attention + dtype + attention), found);
    EXPECT_EQ(row_error(h100, kExperts + "bfloat16" + experts + dtype + experts), found);
  }
}

// A device without 16-bit rates is fitted in the precision that it has.
TEST(KernelLimits, TakeSinglePrecisionWhereThereIsNoHalf) {
  Device device = a100();
  device.peak[static_cast<std::size_t>(Dtype::fp16)] = FlopsPerSecond(0);
  device.peak[static_cast<std::size_t>(Dtype::bf16)] = FlopsPerSecond(0);
  EXPECT_EQ(row_error(device, kAttention + "float32,1,4096,32,8,128,0,20000\n"), "");
  EXPECT_NE(row_error(device, kAttention + "bfloat16,1,4096,32,8,128,0,20000\n"), "");
}

// The first bad row is named, whether it is impossible or unreadable.
TEST(KernelLimits, NameTheFirstBadRow) {
  const RowCheck check = [](const KernelTable& table) { return check_rows(a100(), table); };
  const auto error = [&](const std::string& rows) {
    const auto table = parse_kernel_table("dtype,m,n,k,latency_us\n" + rows, "t.csv", check);
    return table ? "" : table.error().where + ": " + table.error().message;
  };
  const std::string good = "bfloat16,4096,4096,4096,500\n";
  const std::string impossible = "fp8,64,64,64,9\n", unreadable = "bfloat16,64,64,64,nine\n";
  const std::string no_dtype = "column dtype: found \"fp8\"";
  const std::string no_time = "column latency_us: found \"nine\"";
  EXPECT_EQ(error(good + good), "");
  EXPECT_TRUE(error(good + impossible + unreadable).starts_with("t.csv: row 3: " + no_dtype));
  EXPECT_TRUE(error(impossible + good + "1,2\n").starts_with("t.csv: row 2: " + no_dtype));
  EXPECT_TRUE(error(good + unreadable + impossible).starts_with("t.csv: row 3: " + no_time));
  EXPECT_TRUE(error(unreadable + impossible).starts_with("t.csv: row 2: " + no_time));
}

TEST(KernelLimits, AreTheFiguresThatADeviceHas) {
  Device device = a100();
  device.link_bandwidth = BytesPerSecond(0);
  const std::string rows = "op,gpus,bytes,latency_us\nall_gather,8,1073741824,";
  EXPECT_EQ(row_error(device, rows + "1\n"), "");
  EXPECT_EQ(row_error(device, rows + "999999999\n"), "");
}

// No text in the document can express this latency.
TEST(WrittenDevices, AreReadBackFirst) {
  auto document = read_device("a100-sxm-80gb", "test").value();
  EXPECT_TRUE(check_device_document(device_document(document.device, document, {}), "out.json"));
  document.device.collectives.at(1).latency = Seconds(1e-300);
  const auto checked =
      check_device_document(device_document(document.device, document, {}), "out.json");
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().where, "out.json: /collectives/1/latency");
  EXPECT_TRUE(checked.error().message.starts_with("found \"\"; allowed: "));
  EXPECT_TRUE(checked.error().message.ends_with("; nothing was written"));
}

}  // namespace
}  // namespace trainyard
