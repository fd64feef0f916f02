#include "scenarios/interchange/hardware/nccl_topology.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/interchange/foreign.h"
#include "tests/support/shared_data.h"

namespace trainyard {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ImportedNode shared_topology(const std::filesystem::path& shared, const char* name) {
  const auto file = read_foreign_file(shared / "topologies" / "nccl" / name).value();
  return nccl_topology_node(file, std::nullopt).value();
}

// One GPU and one NIC behind a PCIe switch, as NCCL 2.21 dumped an H200 node (NVIDIA/nccl issues).
std::string switch_with(int number, const std::string& links, int speed = 400'000) {
  return fmt::format(
      R"(<pci busid="0000:{0}6:00.0" class="0x060400" vendor="0x1000" device="0xc030"
              link_speed="32.0 GT/s PCIe" link_width="16">
           <pci busid="0000:{0}8:00.0" class="0x030200" vendor="0x10de" device="0x2335"
                link_speed="32.0 GT/s PCIe" link_width="16">
             <gpu dev="{0}" sm="90" rank="{0}" gdr="1">{1}</gpu></pci>
           <pci busid="0000:{0}9:00.0" class="0x020000" vendor="0x15b3" device="0x1021"
                link_speed="32.0 GT/s PCIe" link_width="16">
             <nic><net name="mlx5_{0}" dev="{0}" speed="{2}" port="1" gdr="1"/></nic></pci>
         </pci>)",
      number, links, speed);
}

const std::string kToSwitches =
    R"(<nvlink target="0000:07:00.0" count="5" tclass="0x068000"/>
       <nvlink target="0000:06:00.0" count="5" tclass="0x068000"/>
       <nvlink target="0000:05:00.0" count="4" tclass="0x068000"/>
       <nvlink target="0000:08:00.0" count="4" tclass="0x068000"/>)";

std::string system_of(const std::string& inside) {
  return R"(<system version="1"><cpu host_hash="0x16fe" numaid="0" arch="x86_64">)" + inside +
         "</cpu></system>";
}

Expected<ImportedNode> read(const std::string& text) {
  return nccl_topology_node(foreign(text), std::nullopt);
}

std::string nccl_topology_refusal(const std::string& text) { return line_of(read(text).error()); }

// Amazon's file says PCI slots and the A100's device number; the rest is p4d's data sheet: four
// adapters of 100 Gbit/s, 300 GB/s of NVLink a GPU.
TEST(NcclTopology, ReadsAmazonsP4d) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const ImportedNode read = shared_topology(shared, "aws-p4d.24xlarge.xml");
  EXPECT_EQ(read.device, "a100-sxm-40gb");
  EXPECT_EQ(read.node.devices, 8);
  EXPECT_EQ(read.node.nics, 4);
  EXPECT_DOUBLE_EQ(read.node.nic_bandwidth.value(), 100e9 / 8);
  EXPECT_EQ(read.node.intra.kind, IntraNodeKind::nvswitch);
  EXPECT_DOUBLE_EQ(read.node.intra.bandwidth.value(), 300e9);
  EXPECT_THAT(read.assumptions, ElementsAre(HasSubstr("no NVLinks"), HasSubstr("no speed")));
}

// Azure's files name no device: eight A100 with a 200 Gbit/s HDR adapter each.
TEST(NcclTopology, ReadsAzuresNdv4AndSaysWhatItAssumes) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const ImportedNode read = shared_topology(shared, "azure-ndv4-a100.xml");
  EXPECT_EQ(read.device, "a100-sxm-80gb");
  EXPECT_EQ(read.node.devices, 8);
  EXPECT_EQ(read.node.nics, 8);
  EXPECT_DOUBLE_EQ(read.node.nic_bandwidth.value(), 200e9 / 8);
  EXPECT_THAT(read.assumptions, Contains(HasSubstr("the file names none")));
}

TEST(NcclTopology, ReadsAzuresNdv2WithADeviceOfTheUsers) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const auto file =
      read_foreign_file(shared / "topologies" / "nccl" / "azure-ndv2-v100.xml").value();
  const auto read = nccl_topology_node(file, *named_device("v100-sxm-32gb")).value();
  EXPECT_EQ(read.node.devices, 8);
  EXPECT_EQ(read.node.nics, 1);
  EXPECT_EQ(read.node.intra.kind, IntraNodeKind::nvlink_mesh);
  EXPECT_DOUBLE_EQ(read.node.intra.bandwidth.value(), 150e9);
}

// 18 links of 25 GB/s to four NVSwitches; nothing is left to assume.
TEST(NcclTopology, CountsTheNvlinksAndPortsThatADumpHas) {
  const auto read_node = read(system_of(switch_with(1, kToSwitches) + switch_with(2, kToSwitches)));
  ASSERT_TRUE(read_node.has_value()) << line_of(read_node.error());
  EXPECT_EQ(read_node->device, "h200-sxm-141gb");
  EXPECT_EQ(read_node->node.devices, 2);
  EXPECT_EQ(read_node->node.nics, 2);
  EXPECT_DOUBLE_EQ(read_node->node.nic_bandwidth.value(), 400e9 / 8);
  EXPECT_EQ(read_node->node.intra.kind, IntraNodeKind::nvswitch);
  EXPECT_DOUBLE_EQ(read_node->node.intra.bandwidth.value(), 18 * 25e9);
  EXPECT_THAT(read_node->assumptions, IsEmpty());
}

// NCCL lists a socket once under each CPU; 10 Gbit/s beside 400 carry no gradients.
TEST(NcclTopology, LeavesOutSlowerPorts) {
  const std::string socket = R"(<nic><net name="eth0" dev="9" speed="10000" gdr="0"/></nic>)";
  const auto read_node = read(system_of(switch_with(1, kToSwitches) + socket + socket));
  EXPECT_EQ(read_node->node.nics, 1);
  EXPECT_THAT(read_node->assumptions, ElementsAre(HasSubstr("1 slower network port")));
}

// 30,000 ports, each listed under two CPUs.
TEST(NcclTopology, CountsEachOfManyPortsOnce) {
  std::string sockets;
  for (int i = 0; i < 30'000; ++i) {
    sockets += fmt::format(R"(<nic><net name="eth{}" speed="400000"/></nic>)", i);
  }
  const auto read_node = read(system_of(switch_with(1, kToSwitches) + sockets + sockets));
  ASSERT_TRUE(read_node.has_value()) << line_of(read_node.error());
  EXPECT_EQ(read_node->node.nics, 30'001);
}

// A rate that is no number is one that the file does not say.
TEST(NcclTopology, TakesNoEndlessRate) {
  for (const char* speed : {"inf GT/s PCIe", "nan", "1e300", "-32.0"}) {
    std::string text = system_of(switch_with(1, ""));
    for (std::size_t at = 0; (at = text.find("32.0 GT/s PCIe", at)) != text.npos;) {
      text.replace(at, 14, speed);
      at += std::string_view(speed).size();
    }
    const auto read_node = read(text);
    ASSERT_TRUE(read_node.has_value()) << line_of(read_node.error());
    // Then it is PCIe 5, which an H200 is made for, and said.
    EXPECT_NEAR(read_node->node.intra.bandwidth.value(), 63.015e9, 1e6) << speed;
    EXPECT_THAT(read_node->assumptions, Contains(HasSubstr("no PCIe speed"))) << speed;
  }
}

// Amazon's file for p5 has its GPUs but neither their numbers nor links, which NCCL then finds: 18
// of 25 GB/s each (H100 SXM datasheet), and four adapters of 100 Gbit/s beside each.
TEST(NcclTopology, AssumesTheNvlinksThatAFileWrittenByHandLeavesOut) {
  std::string gpus;
  for (int gpu = 0; gpu < 8; ++gpu) {
    gpus += fmt::format(R"(<pci busid="0000:0{0}:00.0" class="0x060400">
             <pci busid="0000:{0}f:00.0" class="0x030200" link_speed="32.0 GT/s PCIe"
                  link_width="16"><gpu dev="{0}" sm="90" rank="{0}" gdr="1"/></pci>)",
                        gpu);
    for (int nic = 0; nic < 4; ++nic) {
      gpus += fmt::format(R"(<pci busid="0000:{0}{1}:00.0" class="0x020000"><nic>
               <net name="rdmap{0}s{1}" speed="100000" gdr="1"/></nic></pci>)",
                          gpu, nic);
    }
    gpus += "</pci>";
  }
  const auto read_node = read(system_of(gpus));
  ASSERT_TRUE(read_node.has_value()) << line_of(read_node.error());
  EXPECT_EQ(read_node->node.devices, 8);
  EXPECT_EQ(read_node->node.nics, 32);
  EXPECT_EQ(read_node->node.intra.kind, IntraNodeKind::nvswitch);
  EXPECT_DOUBLE_EQ(read_node->node.intra.bandwidth.value(), 18 * 25e9);
  EXPECT_THAT(read_node->assumptions, Contains(HasSubstr("no NVLinks")));
}

// GB/s of PCIe 5 x16: 32 GT/s · 16 lanes · 128/130 / 8 bits.
TEST(NcclTopology, TakesPcieWhereADumpHasNoNvlink) {
  const auto read_node = read(system_of(switch_with(1, "")));
  EXPECT_EQ(read_node->node.intra.kind, IntraNodeKind::pcie);
  EXPECT_NEAR(read_node->node.intra.bandwidth.value(), 63.015e9, 1e6);
}

// Bridges between pairs of cards (H100 NVL: 12 links) are no mesh of all.
TEST(NcclTopology, TakesPcieWhereNvlinksJoinOnlyPairs) {
  const auto to = [](int other) {
    return fmt::format(R"(<nvlink target="0000:{}8:00.0" count="12" tclass="0x030200"/>)", other);
  };
  const auto pairs = read(system_of(switch_with(1, to(2)) + switch_with(2, to(1)) +
                                    switch_with(3, to(4)) + switch_with(4, to(3))));
  ASSERT_TRUE(pairs.has_value()) << line_of(pairs.error());
  EXPECT_EQ(pairs->node.intra.kind, IntraNodeKind::pcie);
  EXPECT_NEAR(pairs->node.intra.bandwidth.value(), 63.015e9, 1e6);
  EXPECT_THAT(pairs->assumptions, ElementsAre(HasSubstr("at most 2 of the 4 GPUs")));
  // A ring over all of them is a mesh, if a sparse one.
  const auto ring = read(system_of(switch_with(1, to(2) + to(4)) + switch_with(2, to(1) + to(3)) +
                                   switch_with(3, to(2) + to(4)) + switch_with(4, to(3) + to(1))));
  EXPECT_EQ(ring->node.intra.kind, IntraNodeKind::nvlink_mesh);
  EXPECT_DOUBLE_EQ(ring->node.intra.bandwidth.value(), 24 * 25e9);
}

// A dump of a multi-node NVLink domain has the CPUs of every host.
TEST(NcclTopology, MakesOneNvlinkDomainOfSeveralHosts) {
  const std::string one = switch_with(1, kToSwitches) + switch_with(2, kToSwitches);
  const auto read_node =
      read(R"(<system version="1"><cpu host_hash="0x1" numaid="0">)" + one +
           R"(</cpu><cpu host_hash="0x2" numaid="0">)" + one + "</cpu></system>");
  EXPECT_EQ(read_node->node.devices, 2);
  EXPECT_EQ(read_node->node.nvlink_domain, 4);
}

TEST(NcclTopology, ExpandsNoEntity) {
  EXPECT_EQ(
      nccl_topology_refusal("<!DOCTYPE s [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>\n<system/>"),
      "foreign: line 1: found a document type declaration; allowed: none, entities are not "
      "expanded");
}

TEST(NcclTopology, RefusesWhatIsNoTopology) {
  EXPECT_THAT(nccl_topology_refusal(""), HasSubstr("found text that is not XML"));
  EXPECT_THAT(nccl_topology_refusal("<system>\n<cpu>\n</system>"),
              HasSubstr("line 3: found text that is not"));
  EXPECT_EQ(nccl_topology_refusal("<graphs/>"),
            "foreign: found no <system>; allowed: an NCCL topology");
  EXPECT_THAT(nccl_topology_refusal("\n<system/>"), HasSubstr("line 2: found no GPU"));
  EXPECT_THAT(nccl_topology_refusal(system_of(switch_with(1, R"(<nvlink count="many"/>)"))),
              HasSubstr("found count=\"many\"; allowed: a whole number from 0 to 1000"));
  EXPECT_THAT(nccl_topology_refusal(system_of(switch_with(1, R"(<nvlink count="-18"/>)"))),
              HasSubstr("found count=\"-18\""));
}

TEST(NcclTopology, RefusesMoreThanAMachineHas) {
  std::string deep, wide;
  for (int i = 0; i < 1000; ++i) deep += "<pci>";
  for (int i = 0; i < 500'000; ++i) wide += "<a/>";
  for (int i = 0; i < 1000; ++i) deep += "</pci>";
  EXPECT_THAT(nccl_topology_refusal(deep), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(nccl_topology_refusal(wide), HasSubstr("allowed: at most 200000"));
}

// As many as a node document can say, 10^4 a host and 10^6 in all, and one more.
TEST(NcclTopology, RefusesMoreGpusThanANodeHas) {
  const auto hosts_of = [](int hosts, int gpus) {
    std::string first, others;
    for (int i = 0; i < gpus; ++i) first += R"(<pci class="0x030200"/>)";
    for (int i = 1; i < hosts; ++i) others += fmt::format(R"(<cpu host_hash="{}"/>)", i);
    return R"(<system><cpu host_hash="0">)" + first + "</cpu>" + others + "</system>";
  };
  EXPECT_EQ(read(hosts_of(1, 10'000))->node.devices, 10'000);
  EXPECT_EQ(nccl_topology_refusal(hosts_of(1, 10'001)),
            "foreign: line 1: found 1 host of 10001 GPUs; allowed: at most 10000 GPUs a host and "
            "1000000 in all");
  EXPECT_EQ(read(hosts_of(1000, 1000))->node.nvlink_domain, 1'000'000);
  EXPECT_THAT(nccl_topology_refusal(hosts_of(1001, 1000)),
              HasSubstr("found 1001 hosts of 1000 GPUs"));
}

}  // namespace
}  // namespace trainyard
