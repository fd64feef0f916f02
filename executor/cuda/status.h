// The first failure of a call of the CUDA libraries, as a sentence. Work runs after it was handed
// over, so a failure may show in a later call; later failures are ignored.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace trainyard {

class CudaStatus {
 public:
  bool ok() const { return message_.empty(); }
  const std::string& message() const { return message_; }

  void check(cudaError_t error, const char* call) {
    if (error != cudaSuccess) fail(std::string(call) + " failed: " + cudaGetErrorString(error));
  }
  void fail(std::string message) {
    if (message_.empty()) message_ = std::move(message);
  }

 private:
  std::string message_;
};

}  // namespace trainyard
