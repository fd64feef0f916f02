#include "scenarios/interchange/known_hardware.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(KnownHardware, IsFoundByTheDriversName) {
  EXPECT_EQ(catalog_name_of_product("NVIDIA H100 80GB HBM3"), "h100-sxm-80gb");
  EXPECT_EQ(catalog_name_of_product("NVIDIA H200"), "h200-sxm-141gb");
  EXPECT_EQ(catalog_name_of_product("NVIDIA H800"), "h800-sxm-80gb");
  EXPECT_EQ(catalog_name_of_product("NVIDIA GB200"), "gb200-192gb");
  EXPECT_EQ(catalog_name_of_product("NVIDIA GeForce RTX 4090"), "rtx-4090-24gb");
}

// Their names hold the name of another: a Grace Hopper, cards, a smaller chip.
TEST(KnownHardware, TakesNoRelativeForADeviceOfTheCatalog) {
  for (const char* product :
       {"NVIDIA GH200 480GB", "NVIDIA GH200 144G HBM3e", "NVIDIA H200 NVL", "NVIDIA H800 PCIe",
        "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU"}) {
    EXPECT_EQ(catalog_name_of_product(product), "") << product;
  }
}

}  // namespace
}  // namespace trainyard
