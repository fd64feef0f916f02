#include "scenarios/interchange/hardware/nvidia_smi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/interchange/foreign.h"

namespace trainyard {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A DGX A100 (driver 535): escapes underline the names of the NICs, and the last two NICs serve
// storage.
const std::string kDgxA100 =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"
    "\x1b[0m\n"
    "GPU0\t X \tNV12\tNV12\tNV12\tPXB\tSYS\tSYS\t48-63,176-191\t3\t\tN/A\n"
    "GPU1\tNV12\t X \tNV12\tNV12\tPXB\tSYS\tSYS\t48-63,176-191\t3\t\tN/A\n"
    "GPU2\tNV12\tNV12\t X \tNV12\tSYS\tPXB\tSYS\t16-31,144-159\t1\t\tN/A\n"
    "GPU3\tNV12\tNV12\tNV12\t X \tSYS\tPXB\tSYS\t16-31,144-159\t1\t\tN/A\n"
    "NIC0\tPXB\tPXB\tSYS\tSYS\t X \tSYS\tSYS\n\n"
    "Legend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\n"
    "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n  NIC2: mlx5_2\n";

// DGX-1 with V100 (NVIDIA DGX-1 user guide): a hybrid cube mesh with six links per GPU.
const std::string kDgx1 =
    "     GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7 mlx5_0 mlx5_2 mlx5_1 mlx5_3 CPU Affinity\n"
    "GPU0  X   NV1  NV1  NV2  NV2  SYS  SYS  SYS  PIX  SYS  PHB  SYS  0-19,40-59\n"
    "GPU1 NV1   X   NV2  NV1  SYS  NV2  SYS  SYS  PIX  SYS  PHB  SYS  0-19,40-59\n"
    "GPU2 NV1  NV2   X   NV2  SYS  SYS  NV1  SYS  PHB  SYS  PIX  SYS  0-19,40-59\n"
    "GPU3 NV2  NV1  NV2   X   SYS  SYS  SYS  NV1  PHB  SYS  PIX  SYS  0-19,40-59\n"
    "GPU4 NV2  SYS  SYS  SYS   X   NV1  NV1  NV2  SYS  PIX  SYS  PHB  20-39,60-79\n"
    "GPU5 SYS  NV2  SYS  SYS  NV1   X   NV2  NV1  SYS  PIX  SYS  PHB  20-39,60-79\n"
    "GPU6 SYS  SYS  NV1  SYS  NV1  NV2   X   NV2  SYS  PHB  SYS  PIX  20-39,60-79\n"
    "GPU7 SYS  SYS  SYS  NV1  NV2  NV1  NV2   X   SYS  PHB  SYS  PIX  20-39,60-79\n";

Expected<ImportedNode> read_matrix(const std::string& text) {
  return nvidia_smi_node(foreign(text), std::nullopt);
}
std::string nvidia_smi_refusal(const std::string& text) {
  return line_of(read_matrix(text).error());
}

TEST(NvidiaSmi, SeesAnNvswitchWhereEveryPairHasAllLinks) {
  const auto node = read_matrix(kDgxA100);
  ASSERT_TRUE(node.has_value()) << line_of(node.error());
  EXPECT_EQ(node->device, "a100-sxm-80gb");
  EXPECT_EQ(node->node.devices, 4);
  EXPECT_EQ(node->node.intra.kind, IntraNodeKind::nvswitch);
  EXPECT_DOUBLE_EQ(node->node.intra.bandwidth.value(), 12 * 25e9);
  EXPECT_EQ(node->node.nics, 2);
  EXPECT_THAT(node->assumptions, Contains(HasSubstr("of 3 NICs the 2 behind")));
}

// Four H100 of an HGX board. One has lost one of its 18 NVLinks of 25 GB/s, so only 17 reach or
// leave it: 17 · 25 = 425 GB/s.
TEST(NvidiaSmi, TakesTheFewestLinksThroughASwitch) {
  const auto node = read_matrix(
      "\tGPU0\tGPU1\tGPU2\tGPU3\n"
      "GPU0\t X \tNV18\tNV18\tNV17\n"
      "GPU1\tNV18\t X \tNV18\tNV17\n"
      "GPU2\tNV18\tNV18\t X \tNV17\n"
      "GPU3\tNV17\tNV17\tNV17\t X \n");
  ASSERT_TRUE(node.has_value()) << line_of(node.error());
  EXPECT_EQ(node->device, "h100-sxm-80gb");
  EXPECT_EQ(node->node.intra.kind, IntraNodeKind::nvswitch);
  EXPECT_DOUBLE_EQ(node->node.intra.bandwidth.value(), 425e9);
  EXPECT_THAT(
      node->assumptions,
      Contains("the GPUs have 17 to 18 NVLinks: links are missing, and all are taken to have "
               "the fewest"));
}

// Four GPUs with six links between each pair use all 18 links of a device.
TEST(NvidiaSmi, TellsAMeshOfAllLinksFromASwitch) {
  const auto node = read_matrix(
      "\tGPU0\tGPU1\tGPU2\tGPU3\n"
      "GPU0\t X \tNV6\tNV6\tNV6\n"
      "GPU1\tNV6\t X \tNV6\tNV6\n"
      "GPU2\tNV6\tNV6\t X \tNV6\n"
      "GPU3\tNV6\tNV6\tNV6\t X \n");
  EXPECT_EQ(node->node.intra.kind, IntraNodeKind::nvlink_mesh);
  EXPECT_DOUBLE_EQ(node->node.intra.bandwidth.value(), 450e9);
}

// NVLink 5 (NVIDIA's data sheet of GB300): 18 links, 900 GB/s per direction.
TEST(NvidiaSmi, TakesTheNvlinksThatTheDeviceHas) {
  const std::string tray =
      "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV18\tNV18\n"
      "GPU1\tNV18\t X \tNV18\nGPU2\tNV18\tNV18\t X \n";
  NamedDevice ours = **named_device("gb300-288gb");
  const auto known = nvidia_smi_node(foreign(tray), ours);
  EXPECT_DOUBLE_EQ(known->node.intra.bandwidth.value(), 900e9);
  EXPECT_THAT(known->assumptions, Contains(HasSubstr("a rack of gb300-288gb has 72")));
  ours.name = ours.device.name = "ours";
  const auto unknown = nvidia_smi_node(foreign(tray), ours);
  EXPECT_DOUBLE_EQ(unknown->node.intra.bandwidth.value(), 900e9);
  EXPECT_THAT(unknown->assumptions, Contains(HasSubstr("ours does not say how many NVLinks")));
}

TEST(NvidiaSmi, AddsUpTheLinksOfAMesh) {
  const auto node = read_matrix(kDgx1);
  ASSERT_TRUE(node.has_value()) << line_of(node.error());
  EXPECT_EQ(node->device, "v100-sxm-32gb");
  EXPECT_EQ(node->node.intra.kind, IntraNodeKind::nvlink_mesh);
  EXPECT_DOUBLE_EQ(node->node.intra.bandwidth.value(), 6 * 25e9);
  EXPECT_EQ(node->node.nics, 4);
  EXPECT_DOUBLE_EQ(node->node.nic_bandwidth.value(), 100e9 / 8);
}

TEST(NvidiaSmi, TakesTheDeviceThatTheUserNames) {
  const auto node = nvidia_smi_node(foreign(kDgxA100), *named_device("a100-sxm-40gb"));
  EXPECT_EQ(node->device, "a100-sxm-40gb");
}

TEST(NvidiaSmi, TakesPcieWhereNoPairHasAnNvlink) {
  const auto node = read_matrix("\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n");
  EXPECT_EQ(node->node.intra.kind, IntraNodeKind::pcie);
  EXPECT_EQ(node->device, "l40s-48gb");
}

// PCIe 4 x16: 16 GT/s · 16 lanes · 128/130 / 8 bits, whatever NVLink the device could have.
TEST(NvidiaSmi, TakesThePcieOfADeviceWithNvlink) {
  const std::string matrix = "\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n";
  const auto node = nvidia_smi_node(foreign(matrix), *named_device("a100-sxm-80gb"));
  EXPECT_EQ(node->node.intra.kind, IntraNodeKind::pcie);
  EXPECT_NEAR(node->node.intra.bandwidth.value(), 31.508e9, 1e6);
  EXPECT_THAT(node->assumptions, Contains(HasSubstr("no NVLink: PCIe of 31.51 GB/s")));
}

// Two pairs of bridged cards. The catalog gives a PCIe card's link 64 GB/s.
TEST(NvidiaSmi, TakesPcieWhereNvlinksJoinOnlyPairs) {
  const std::string matrix =
      "\tGPU0\tGPU1\tGPU2\tGPU3\n"
      "GPU0\t X \tNV12\tNODE\tSYS\n"
      "GPU1\tNV12\t X \tSYS\tSYS\n"
      "GPU2\tNODE\tSYS\t X \tNV12\n"
      "GPU3\tSYS\tSYS\tNV12\t X \n";
  for (const auto& device : {std::optional<NamedDevice>(), *named_device("h100-nvl-94gb")}) {
    const auto node = nvidia_smi_node(foreign(matrix), device);
    ASSERT_TRUE(node.has_value()) << line_of(node.error());
    EXPECT_EQ(node->device, "h100-nvl-94gb");
    EXPECT_EQ(node->node.intra.kind, IntraNodeKind::pcie);
    EXPECT_DOUBLE_EQ(node->node.intra.bandwidth.value(), 64e9);
    EXPECT_THAT(node->assumptions, Contains(HasSubstr("at most 2 of the 4 GPUs")));
  }
}

TEST(NvidiaSmi, RefusesWhatIsNoMatrix) {
  EXPECT_EQ(nvidia_smi_refusal(""),
            "foreign: found no row of GPU0, GPU1, …; allowed: what nvidia-smi topo -m "
            "prints");
  EXPECT_THAT(nvidia_smi_refusal("\tGPU0\tGPU1\nGPU0\t X \tNV12\n"),
              HasSubstr("found the rows of 1 GPU;"));
  EXPECT_THAT(nvidia_smi_refusal("\tGPU0\tGPU1\nGPU0\t X \tNVx\nGPU1\tNV1\tX\n"),
              HasSubstr("line 2: found \"NVx\"; allowed: X, SYS"));
  EXPECT_THAT(nvidia_smi_refusal("\tGPU0\tGPU1\nGPU0\t X\n"),
              HasSubstr("line 2: found 1 cell of GPU0"));
  EXPECT_THAT(nvidia_smi_refusal("\tGPU0\tGPU1\nGPU0\tX\tNV1\nGPU0\tX\tNV1\n"),
              HasSubstr("line 3: found GPU0 twice"));
}

}  // namespace
}  // namespace trainyard
