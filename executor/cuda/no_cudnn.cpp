// Stands in for cuDNN where its headers were not found.
#include "executor/cuda/cudnn_attention.h"

namespace trainyard {
namespace {

class NoCudnn final : public CudnnAttention {
 public:
  bool forward(const Queue&, const AttentionPlan&, const AttentionOperands&) override {
    return false;
  }
  bool backward(const Queue&, const AttentionPlan&, const AttentionOperands&,
                const AttentionGradients&) override {
    return false;
  }
};

}  // namespace

std::unique_ptr<CudnnAttention> make_cudnn_attention() { return std::make_unique<NoCudnn>(); }

std::string cudnn_version() { return ""; }

}  // namespace trainyard
