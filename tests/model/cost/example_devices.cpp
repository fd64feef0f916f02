#include "tests/model/cost/example_devices.h"

namespace trainyard {
namespace {

using namespace literals;

std::size_t slot(Dtype dtype) { return static_cast<std::size_t>(dtype); }

GemmRates h100_bf16() {
  return {.per_multiprocessor = 6.398_TFLOPps,
          .overhead = 2.586_us,
          .fill = 139.8,
          .memory_share = 0.8249,
          .wave_round = 0.5301,
          .wave_tail = 0.01142,
          .clock_drop = 0.1418,
          .tile_efficiency = {1, 0.9747, 0.9449},
          .split_bytes = 100.9};
}

GemmRates h100_fp8() {
  return {.per_multiprocessor = 12.16_TFLOPps,
          .overhead = 2.586_us,
          .fill = 290.5,
          .memory_share = 0.8062,
          .wave_round = 0.4115,
          .wave_tail = 0.01783,
          .clock_drop = 0.114,
          .tile_efficiency = {1, 0.9833, 0.9609},
          .split_bytes = 50.23};
}

GemmRates a100_bf16() {
  return {.per_multiprocessor = 2.651_TFLOPps,
          .overhead = 3.037_us,
          .fill = 179.4,
          .memory_share = 0.7498,
          .wave_round = 0.4509,
          .wave_tail = 0.0256,
          .clock_drop = 0.09503,
          .tile_efficiency = {1, 0.8631, 0.6896},
          .split_bytes = 29.71};
}

}  // namespace

Device example_a100() {
  Device device;
  device.name = "a100";
  device.generation = DeviceGeneration::ampere;
  device.peak[slot(Dtype::fp16)] = device.peak[slot(Dtype::bf16)] = 312.0_TFLOPps;
  device.memory = 80.0_GiB;
  device.memory_bandwidth = 2039.0_GBps;
  device.link_bandwidth = 300.0_GBps;
  device.host_bandwidth = 25.0_GBps;
  device.power = Watts(400);
  device.multiprocessors = 108;
  device.rates.gemm[slot(Dtype::fp16)] = device.rates.gemm[slot(Dtype::bf16)] = a100_bf16();
  device.rates.attention = {{128, 1.445_TFLOPps, 6.714_us, 0.6146, 0.01_us, 2.0}};
  device.rates.experts = {1.628_TFLOPps, 49.85_us, 41.16, 5.0, 1.0};
  return device;
}

Device example_h100() {
  Device device;
  device.name = "h100";
  device.generation = DeviceGeneration::hopper;
  device.peak[slot(Dtype::fp16)] = device.peak[slot(Dtype::bf16)] = 989.0_TFLOPps;
  device.peak[slot(Dtype::fp8)] = 1979.0_TFLOPps;
  device.memory = 80.0_GiB;
  device.memory_bandwidth = 3350.0_GBps;
  device.link_bandwidth = 450.0_GBps;
  device.host_bandwidth = 55.0_GBps;
  device.power = Watts(700);
  device.price = Dollars(2.99) / Seconds(3600);
  device.multiprocessors = 132;
  device.rates.gemm[slot(Dtype::fp16)] = device.rates.gemm[slot(Dtype::bf16)] = h100_bf16();
  device.rates.gemm[slot(Dtype::fp8)] = h100_fp8();
  device.rates.attention = {{64, 3.783_TFLOPps, 15.55_us, 0.5787, 3.672_us, 2.766},
                            {128, 4.434_TFLOPps, 11.41_us, 0.5109, 0.6048_us, 2.018}};
  device.rates.experts = {6.513_TFLOPps, 29.18_us, 118.5, 134.1, 1.0};
  device.rates.memory = 0.87;
  return device;
}

Device ideal_device() {
  Device device;
  device.name = "ideal";
  device.memory = 80.0_GB;
  device.memory_bandwidth = 1000.0_GBps;
  device.link_bandwidth = 100.0_GBps;
  device.host_bandwidth = 50.0_GBps;
  device.power = Watts(500);
  device.price = Dollars(3.6) / Seconds(3600);
  device.multiprocessors = 100;
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16, Dtype::fp8}) {
    device.peak[slot(dtype)] = 100.0_TFLOPps;
    device.rates.gemm[slot(dtype)].per_multiprocessor = 1.0_TFLOPps;
    device.rates.gemm[slot(dtype)].memory_share = 1;
  }
  device.rates.attention = {{128, 1.0_TFLOPps, Seconds(0), 0, Seconds(0), 1}};
  device.rates.experts = {1.0_TFLOPps, Seconds(0), 0, 0, 1};
  device.rates.batched_gemm = 1;
  device.rates.memory = 1;
  device.rates.launch = Seconds(0);
  return device;
}

}  // namespace trainyard
