#include "tests/gpu/emulated/block.h"

#include <cuda_fp16.h>
#include <setjmp.h>
#include <ucontext.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

uint3 threadIdx{}, blockIdx{};
dim3 blockDim{}, gridDim{};

namespace trainyard {
namespace {

constexpr std::size_t kStack = std::size_t{64} << 10;

// A fiber runs a thread of one kernel after another. It is entered by its context once and switched
// to by jumps after that, because a jump needs no system call.
struct Fiber {
  ucontext_t context{};
  jmp_buf place{};
  std::vector<char> stack = std::vector<char>(kStack);
  bool ended = false, entered = false;
};

// What a thread has contributed to the current barrier.
struct Brought {
  float number = 0;
  int flag = 0;
  const unsigned short* row = nullptr;
  float a[8]{}, b[4]{};
};

class EmulatedBlock {
 public:
  void run(int threads, std::size_t shared, const std::function<void()>& kernel) {
    kernel_ = &kernel;
    shared_.assign(shared, 0xff);
    brought.assign(static_cast<std::size_t>(threads), {});
    while (fibers_.size() < brought.size()) fibers_.push_back(std::make_unique<Fiber>());
    for (std::size_t i = 0; i < brought.size(); ++i) fibers_[i]->ended = false;
    for (;;) {
      std::size_t ended = 0;
      for (std::size_t i = 0; i < brought.size(); ++i) {
        if (!fibers_[i]->ended) resume(i);
        ended += fibers_[i]->ended ? 1 : 0;
      }
      if (ended == brought.size()) return;
      if (ended > 0) fail("some threads have ended, others wait for them");
    }
  }

  void meet() {
    if (_setjmp(fibers_[current_]->place) == 0) _longjmp(scheduler_, 1);
  }
  std::size_t current() const { return current_; }
  unsigned char* shared() { return shared_.data(); }

  std::vector<Brought> brought;

 private:
  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "emulated block: %s\n", what);
    std::abort();
  }
  static void live();

  void resume(std::size_t i) {
    current_ = i;
    threadIdx.x = static_cast<unsigned>(i);
    if (_setjmp(scheduler_) != 0) return;
    Fiber& fiber = *fibers_[i];
    if (fiber.entered) _longjmp(fiber.place, 1);
    fiber.entered = true;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    makecontext(&fiber.context, &EmulatedBlock::live, 0);
    setcontext(&fiber.context);
  }

  const std::function<void()>* kernel_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<unsigned char> shared_;
  jmp_buf scheduler_{};
  std::size_t current_ = 0;
};

EmulatedBlock& block() {
  static EmulatedBlock the_block;
  return the_block;
}

void EmulatedBlock::live() {
  EmulatedBlock& self = block();
  for (;;) {
    (*self.kernel_)();
    self.fibers_[self.current_]->ended = true;
    self.meet();
  }
}

// The two numbers of 16 bits in each register.
void decode(const unsigned* pairs, std::size_t count, bool of_fp16, float* numbers) {
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const unsigned bits = i % 2 == 0 ? pairs[i / 2] & 0xffffU : pairs[i / 2] >> 16;
    numbers[i] = of_fp16 ? __half2float(__half(__half_raw{static_cast<unsigned short>(bits)}))
                         : std::bit_cast<float>(bits << 16);
  }
}

}  // namespace

void run_emulated(dim3 blocks, int threads, std::size_t shared,
                  const std::function<void()>& kernel) {
  static std::mutex one_at_a_time;  // ranks may be threads
  const std::lock_guard lock(one_at_a_time);
  gridDim = blocks;
  blockDim = dim3(static_cast<unsigned>(threads));
  for (unsigned z = 0; z < blocks.z; ++z) {
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x; ++x) {
        blockIdx = {x, y, z};
        block().run(threads, shared, kernel);
      }
    }
  }
}

unsigned char* emulated_shared_memory() { return block().shared(); }

// Lane l gets, of each matrix m, the numbers in columns 2(l mod 4) and 2(l mod 4) + 1 of row l / 4;
// if transposed, rows and columns are exchanged.
void emulated_load_matrices(unsigned (&to)[4], const void* row, bool transposed) {
  EmulatedBlock& b = block();
  b.brought[b.current()].row = static_cast<const unsigned short*>(row);
  b.meet();
  const std::size_t lane = b.current() % 32, first = b.current() - lane;
  for (std::size_t m = 0; m < 4; ++m) {
    unsigned halves[2];
    for (std::size_t k = 0; k < 2; ++k) {
      const std::size_t along = 2 * (lane % 4) + k, across = lane / 4;
      const std::size_t r = transposed ? along : across, c = transposed ? across : along;
      halves[k] = b.brought[first + m * 8 + r].row[c];
    }
    to[m] = halves[0] | halves[1] << 16;
  }
  b.meet();
}

void emulated_multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                           bool of_fp16) {
  EmulatedBlock& b = block();
  const std::size_t lane = b.current() % 32, first = b.current() - lane;
  Brought& mine = b.brought[b.current()];
  decode(a, 4, of_fp16, mine.a);
  const unsigned pairs[2] = {b0, b1};
  decode(pairs, 2, of_fp16, mine.b);
  b.meet();
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t row = lane / 4 + (i / 2) * 8, column = 2 * (lane % 4) + i % 2;
    for (std::size_t k = 0; k < 16; ++k) {
      const Brought& of_a = b.brought[first + row % 8 * 4 + k % 8 / 2];
      const Brought& of_b = b.brought[first + column * 4 + k % 8 / 2];
      sum[i] += of_a.a[2 * (row / 8 + k / 8 * 2) + k % 2] * of_b.b[2 * (k / 8) + k % 2];
    }
  }
  b.meet();
}

}  // namespace trainyard

void __syncthreads() { trainyard::block().meet(); }
void __syncwarp() { trainyard::block().meet(); }

int __syncthreads_or(int mine) {
  trainyard::EmulatedBlock& b = trainyard::block();
  b.brought[b.current()].flag = mine;
  b.meet();
  int any = 0;
  for (const trainyard::Brought& of : b.brought) any |= of.flag;
  b.meet();
  return any;
}

unsigned __ballot_sync(unsigned, int mine) {
  trainyard::EmulatedBlock& b = trainyard::block();
  b.brought[b.current()].flag = mine;
  b.meet();
  const std::size_t first = b.current() / 32 * 32;
  unsigned all = 0;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    if (b.brought[first + lane].flag != 0) all |= 1U << lane;
  }
  b.meet();
  return all;
}
int __popc(unsigned bits) { return std::popcount(bits); }

float __shfl_xor_sync(unsigned, float mine, int away) {
  trainyard::EmulatedBlock& b = trainyard::block();
  b.brought[b.current()].number = mine;
  b.meet();
  const float other = b.brought[b.current() ^ static_cast<std::size_t>(away)].number;
  b.meet();
  return other;
}
