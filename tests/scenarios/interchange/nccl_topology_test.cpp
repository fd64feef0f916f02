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
using ::testing::Not;

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

std::string port_of(int number, int speed) {
  return fmt::format(R"(<nic><net name="mlx5_{0}" dev="{0}" speed="{1}"/></nic>)", number, speed);
}

// A GPU behind its own port of the CPU, as NCCL dumps it.
std::string gpu_alone(int number, const std::string& id = "0x2335", int sm = 90,
                      const std::string& links = kToSwitches) {
  return fmt::format(R"(<pci busid="0000:{0}8:00.0" class="0x030200" vendor="0x10de" device="{1}"
      link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="{0}" sm="{2}">{3}</gpu></pci>)",
                     number, id, sm, links);
}

// A numbered PCI slot, as a cloud's file has it.
std::string slot_of(int number, const std::string& id) {
  return fmt::format(R"(<pci busid="0000:{0}8:00.0" class="0x030200" vendor="0x10de" device="{1}"
      link_speed="32.0 GT/s PCIe" link_width="16"/>)",
                     number, id);
}

Expected<ImportedNode> read(const std::string& text) {
  return nccl_topology_node(foreign(text), std::nullopt);
}
Expected<ImportedNode> read_with(const std::string& text, const std::string& device) {
  return nccl_topology_node(foreign(text), *named_device(device));
}

// A copy of a catalog device under a user's own name.
NamedDevice renamed(const std::string& device) {
  NamedDevice named = **named_device(device);
  named.name = named.device.name = "ours";
  return named;
}

std::string nccl_topology_refusal(const std::string& text) { return line_of(read(text).error()); }

// Amazon's file states PCI slots and the A100's device number. The rest is from p4d's data sheet:
// four adapters of 100 Gbit/s and 300 GB/s of NVLink per GPU.
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

// Azure's files name no device: eight A100 with one 200 Gbit/s HDR adapter each.
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

// 18 links of 25 GB/s to four NVSwitches; nothing has to be assumed.
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

// NCCL lists a socket once under each CPU.
TEST(NcclTopology, LeavesOutSocketsBesideTheNicsOfGpus) {
  const std::string socket = R"(<nic><net name="eth0" dev="9" speed="10000" gdr="0"/></nic>)";
  const auto read_node = read(system_of(switch_with(1, kToSwitches) + socket + socket));
  EXPECT_EQ(read_node->node.nics, 1);
  EXPECT_THAT(read_node->assumptions,
              ElementsAre("of 2 NICs the 1 behind the PCIe switch of a GPU is used"));
}

// A DGX H100 (NVIDIA's user guide): eight ConnectX-7 for compute, one on the switch of each GPU,
// and two for storage on switches of their own, all of 400 Gbit/s.
TEST(NcclTopology, LeavesOutTheNicsOfStorage) {
  std::string inside;
  for (int gpu = 0; gpu < 8; ++gpu) inside += switch_with(gpu, kToSwitches);
  for (const int nic : {8, 9}) {
    inside += fmt::format(R"(<pci busid="0000:{0}6:00.0" class="0x060400"><pci
        busid="0000:{0}9:00.0" class="0x020000">{1}</pci></pci>)",
                          nic, port_of(nic, 400'000));
  }
  const auto read_node = read(system_of(inside));
  ASSERT_TRUE(read_node.has_value()) << line_of(read_node.error());
  EXPECT_EQ(read_node->node.nics, 8);
  EXPECT_DOUBLE_EQ(read_node->node.nic_bandwidth.value(), 400e9 / 8);
  EXPECT_THAT(read_node->assumptions,
              ElementsAre("of 10 NICs the 8 behind the PCIe switch of a GPU are used"));
}

// Eight HDR adapters of 200 Gbit/s carry the gradients, at four times the rate of one 400 Gbit/s
// adapter for storage.
TEST(NcclTopology, TakesTheUsualNicsWhereNoneSharesASwitchWithAGpu) {
  std::string ports;
  for (int nic = 0; nic < 8; ++nic) ports += port_of(nic, 200'000);
  const auto several = read(system_of(gpu_alone(1) + ports + port_of(8, 400'000)));
  ASSERT_TRUE(several.has_value()) << line_of(several.error());
  EXPECT_EQ(several->node.nics, 8);
  EXPECT_DOUBLE_EQ(several->node.nic_bandwidth.value(), 200e9 / 8);
  EXPECT_THAT(several->assumptions,
              ElementsAre("of 9 NICs the 8 of 200 Gbit/s are used: 1 faster left out"));
  const auto lone = read(system_of(gpu_alone(1) + port_of(0, 400'000) + port_of(1, 10'000)));
  EXPECT_EQ(lone->node.nics, 1);
  EXPECT_DOUBLE_EQ(lone->node.nic_bandwidth.value(), 400e9 / 8);
  EXPECT_THAT(lone->assumptions,
              ElementsAre("of 2 NICs the 1 of 400 Gbit/s is used: 1 slower left out"));
}

// 30,000 ports, each listed under two CPUs.
TEST(NcclTopology, CountsEachOfManyPortsOnce) {
  std::string sockets;
  for (int i = 0; i < 30'000; ++i) sockets += port_of(i, 400'000);
  const auto read_node = read(system_of(gpu_alone(1) + sockets + sockets));
  ASSERT_TRUE(read_node.has_value()) << line_of(read_node.error());
  EXPECT_EQ(read_node->node.nics, 30'000);
}

// A rate that is no number counts as not stated.
TEST(NcclTopology, TakesNoEndlessRate) {
  for (const char* speed : {"inf GT/s PCIe", "nan", "1e300", "-32.0"}) {
    std::string text = system_of(switch_with(1, ""));
    for (std::size_t at = 0; (at = text.find("32.0 GT/s PCIe", at)) != text.npos;) {
      text.replace(at, 14, speed);
      at += std::string_view(speed).size();
    }
    const auto read_node = read(text);
    ASSERT_TRUE(read_node.has_value()) << line_of(read_node.error());
    // Then PCIe 5 is assumed, which an H200 is made for, and the assumption is stated.
    EXPECT_NEAR(read_node->node.intra.bandwidth.value(), 63.015e9, 1e6) << speed;
    EXPECT_THAT(read_node->assumptions, Contains(HasSubstr("no PCIe speed"))) << speed;
  }
}

// Amazon's file for p5 lists its GPUs, but neither their numbers nor links, which NCCL finds
// itself: 18 of 25 GB/s each (H100 SXM datasheet). Four adapters of 100 Gbit/s stand beside each
// GPU.
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

// PCIe 5 x16 in GB/s: 32 GT/s · 16 lanes · 128/130 / 8 bits.
TEST(NcclTopology, TakesPcieWhereADumpHasNoNvlink) {
  const auto read_node = read(system_of(switch_with(1, "")));
  EXPECT_EQ(read_node->node.intra.kind, IntraNodeKind::pcie);
  EXPECT_NEAR(read_node->node.intra.bandwidth.value(), 63.015e9, 1e6);
}

// Bridges between pairs of cards (H100 NVL: 12 links) are not a mesh of all.
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
  // A ring over all cards counts as a mesh, although a sparse one.
  const auto ring = read(system_of(switch_with(1, to(2) + to(4)) + switch_with(2, to(1) + to(3)) +
                                   switch_with(3, to(2) + to(4)) + switch_with(4, to(3) + to(1))));
  EXPECT_EQ(ring->node.intra.kind, IntraNodeKind::nvlink_mesh);
  EXPECT_DOUBLE_EQ(ring->node.intra.bandwidth.value(), 24 * 25e9);
}

// NVLink 5 has 18 links of 50 GB/s per direction (NVIDIA's data sheets of GB300 and B200). The
// device may be in the table, a copy of a device in the table, or described only by its document.
TEST(NcclTopology, TakesTheNvlinksThatTheDeviceHas) {
  const std::string dump = system_of(gpu_alone(1, "0x31c2", 103) + gpu_alone(2, "0x31c2", 103));
  const auto own = read(dump);
  ASSERT_TRUE(own.has_value()) << line_of(own.error());
  EXPECT_EQ(own->device, "gb300-288gb");
  EXPECT_DOUBLE_EQ(own->node.intra.bandwidth.value(), 900e9);
  for (const char* device : {"gb300-288gb", "b200-sxm-180gb"}) {
    const auto named = read_with(dump, device);
    EXPECT_DOUBLE_EQ(named->node.intra.bandwidth.value(), 900e9) << device;
  }
  NamedDevice copied = **named_device("b200-sxm-180gb");
  copied.name = "./my-b200.json";
  const auto copy = nccl_topology_node(foreign(dump), copied);
  EXPECT_DOUBLE_EQ(copy->node.intra.bandwidth.value(), 900e9);
  EXPECT_THAT(copy->assumptions, Not(Contains(HasSubstr("does not say"))));
  const auto ours = nccl_topology_node(foreign(dump), renamed("b200-sxm-180gb"));
  EXPECT_DOUBLE_EQ(ours->node.intra.bandwidth.value(), 900e9);
  EXPECT_THAT(
      ours->assumptions,
      Contains("ours does not say how many NVLinks it has: 18 are taken to have the 900 GB/s "
               "of its document together"));
}

TEST(NcclTopology, TakesTheNvlinksThatADocumentHasWhereTheFileHasNone) {
  const std::string cloud = system_of(slot_of(1, "0x31c2") + slot_of(2, "0x31c2"));
  for (const auto& device : {**named_device("gb300-288gb"), renamed("gb300-288gb")}) {
    const auto node = nccl_topology_node(foreign(cloud), device);
    EXPECT_EQ(node->node.intra.kind, IntraNodeKind::nvswitch);
    EXPECT_DOUBLE_EQ(node->node.intra.bandwidth.value(), 900e9);
    EXPECT_THAT(node->assumptions, Contains(HasSubstr("nvswitch of 900 GB/s a device, as")));
  }
  const auto card = nccl_topology_node(foreign(cloud), renamed("l40s-48gb"));
  EXPECT_EQ(card->node.intra.kind, IntraNodeKind::pcie);
  EXPECT_THAT(card->assumptions, Contains(HasSubstr("no NVLink, and ours names none")));
}

// GeForce RTX 5090: 10de:2b85 (pci.ids), compute capability 12.0; H20: 10de:2329, 9.0.
TEST(NcclTopology, SaysWhichDeviceTheCatalogLacks) {
  EXPECT_EQ(nccl_topology_refusal(system_of(gpu_alone(1, "0x2b85", 120, ""))),
            "foreign: line 1: found a GPU of PCI number \"0x2b85\" and compute capability sm 120, "
            "which the catalog does not have; allowed: --device NAME, or \"device\" in a cluster");
  EXPECT_THAT(nccl_topology_refusal(system_of(slot_of(1, "0x2b85"))),
              HasSubstr("found a GPU of PCI number \"0x2b85\", which the catalog"));
  EXPECT_EQ(read_with(system_of(slot_of(1, "0x2b85")), "rtx-4090-24gb")->device, "rtx-4090-24gb");
  const auto alike = read(system_of(gpu_alone(1, "0x2329")));
  EXPECT_EQ(alike->device, "h100-sxm-80gb");
  EXPECT_THAT(alike->assumptions, Contains(HasSubstr("PCI number \"0x2329\"")));
}

TEST(NcclTopology, RefusesUnlikeGpus) {
  EXPECT_THAT(nccl_topology_refusal(system_of(slot_of(1, "0x2330") + slot_of(2, "0x26b9"))),
              HasSubstr("found GPUs of PCI number \"0x2330\" and of \"0x26b9\"; allowed: of one"));
  EXPECT_THAT(nccl_topology_refusal(system_of(gpu_alone(1, "", 90) + gpu_alone(2, "", 89))),
              HasSubstr("found GPUs of compute capability sm 90 and of 89; allowed: of one kind"));
}

// A bus id is the address of one device. Where a file has none, nothing tells GPUs apart.
TEST(NcclTopology, RefusesAGpuThatIsListedTwice) {
  const std::string first = gpu_alone(1, "0x2335", 90, "") + "\n";  // two lines
  EXPECT_EQ(
      nccl_topology_refusal(system_of(first + gpu_alone(2, "0x2335", 90, "") + "\n" + first)),
      "foreign: line 5: found two GPUs of busid \"0000:18:00.0\"; allowed: a busid of its own "
      "for each GPU");
  const std::string nameless = R"(<pci class="0x030200" link_speed="16 GT/s" link_width="16"/>)";
  EXPECT_EQ(read(system_of(nameless + nameless))->node.devices, 2);
}

// A rack of NVL72 has eighteen trays of four devices (NVIDIA's data sheets of GB200 and GB300).
TEST(NcclTopology, SaysThatATrayIsPartOfARack) {
  std::string tray;
  for (int gpu = 0; gpu < 4; ++gpu) tray += gpu_alone(gpu, "0x2941", 100);
  const auto node = read(system_of(tray));
  EXPECT_EQ(node->node.nvlink_domain, 0);
  EXPECT_THAT(node->assumptions, Contains("the NVLink domain is the 4 GPUs of the file: a rack of "
                                          "gb200-192gb has 72 (nvlink_domain)"));
}

// The dump of an NVLink domain over several nodes lists the CPUs of every host.
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

// As many GPUs as a node document allows, 10^4 per host and 10^6 in all, and one more.
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
