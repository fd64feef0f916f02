#include "scenarios/interchange/hardware/known_hardware.h"

#include <gtest/gtest.h>

#include "scenarios/catalog.h"

namespace trainyard {
namespace {

TEST(KnownHardware, IsFoundByTheDriversName) {
  EXPECT_EQ(catalog_name_of_product("NVIDIA H100 80GB HBM3"), "h100-sxm-80gb");
  EXPECT_EQ(catalog_name_of_product("NVIDIA H200"), "h200-sxm-141gb");
  EXPECT_EQ(catalog_name_of_product("NVIDIA H800"), "h800-sxm-80gb");
  EXPECT_EQ(catalog_name_of_product("NVIDIA GB200"), "gb200-192gb");
  EXPECT_EQ(catalog_name_of_product("NVIDIA GeForce RTX 4090"), "rtx-4090-24gb");
}

// These names contain the name of another device: a Grace Hopper, PCIe cards, a smaller chip.
TEST(KnownHardware, TakesNoRelativeForADeviceOfTheCatalog) {
  for (const char* product :
       {"NVIDIA GH200 480GB", "NVIDIA GH200 144G HBM3e", "NVIDIA H200 NVL", "NVIDIA H800 PCIe",
        "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU"}) {
    EXPECT_EQ(catalog_name_of_product(product), "") << product;
  }
}

std::optional<DeviceGeneration> generation_in_catalog(std::string_view name) {
  const auto document = read_device(std::string(name), "test");
  EXPECT_TRUE(document.has_value()) << name;
  return document ? document->device.generation : std::nullopt;
}

// CUDA C++ Programming Guide, compute capabilities: 8.0 is Ampere, 9.0 Hopper, 10 Blackwell. There
// is no published run on 7.0 (Volta) and 8.9 (Ada).
TEST(KnownHardware, HasTheGenerationOfItsComputeCapability) {
  const auto of = [](const KnownDevice& device) -> std::optional<DeviceGeneration> {
    if (device.sm == 80) return DeviceGeneration::ampere;
    if (device.sm == 90) return DeviceGeneration::hopper;
    if (device.sm / 10 == 10) return DeviceGeneration::blackwell;
    return std::nullopt;
  };
  int known = 0;
  for (const std::string& name : catalog_names("device")) {
    const KnownDevice* device = known_device(name);
    if (device == nullptr) continue;
    ++known;
    EXPECT_EQ(generation_in_catalog(name), of(*device)) << name;
  }
  EXPECT_GE(known, 13);
}

TEST(KnownHardware, OfOtherMakersHasNoGenerationThatStacksHaveRunsOf) {
  for (const char* name : {"mi250x-gcd-64gb", "mi300x-192gb", "mi325x-256gb", "gaudi-3-128gb",
                           "tpu-v4-32gb", "tpu-v5p-95gb", "ascend-910b-64gb"}) {
    EXPECT_EQ(generation_in_catalog(name), std::nullopt) << name;
  }
}

// NVIDIA's data sheets, per direction: NVLink 2 to 4 have 25 GB/s per link, NVLink 5 has 50.
TEST(KnownHardware, HasAsManyNvlinksAsTheCatalogHasBandwidth) {
  for (const std::string& name : catalog_names("device")) {
    const KnownDevice* device = known_device(name);
    if (device == nullptr || device->nvlinks == 0) continue;
    const double link = device->sm >= 100 ? 50e9 : 25e9;
    EXPECT_DOUBLE_EQ(read_device(name, "test")->device.link_bandwidth.value(),
                     device->nvlinks * link)
        << name;
  }
}

TEST(KnownHardware, CountsOneNicAsOne) {
  ImportedNode imported;
  imported.device = "x";
  imported.node.devices = 1;
  imported.node.nics = 1;
  imported.node.nic_bandwidth = BytesPerSecond(12.5e9);
  EXPECT_EQ(node_summary(imported),
            "1 device (x), 0 GB/s each inside the node · 1 NIC of 100 Gbit/s");
}

}  // namespace
}  // namespace trainyard
