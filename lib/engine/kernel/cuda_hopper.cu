// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "kernel/cuda_hopper.hpp"

// The bits of a sum repeat only if an addition is in memory when the next one begins. CUTLASS's function of this name
// waits until its numbers have been read. FlashAttention's code finds this one first.
namespace flash {
template <int kMost>
__device__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kMost) : "memory");
}
}  // namespace flash

#include <cuda_check.h>
#undef CHECK_CUDA
#define CHECK_CUDA(call) zs::kernel::cuda::require_launched(call)
namespace zs::kernel::cuda {
static void require_launched(cudaError_t status) {
  if (status != cudaSuccess) throw Error(std::string("backward of attention: ") + cudaGetErrorString(status));
}
}  // namespace zs::kernel::cuda

#include <flash_bwd_launch_template.h>

#include <cstring>
#include <string>
#include <utility>

namespace zs::kernel::cuda {
namespace {

constexpr std::int64_t kTile = 128;

std::int64_t rounded(std::int64_t tokens) { return (tokens + kTile - 1) / kTile * kTile; }
/// The kernels' size of a head.
std::int64_t width(std::int64_t D) { return D <= 64 ? 64 : 128; }

/// The places of temporary numbers, in bytes. The numbers from `zeros` on must be 0 at first.
struct Workspace {
  std::int64_t dots, stats, dq, zeros, dk, dv, dk_turns, dv_turns, dq_turns, bytes;

  explicit Workspace(const HopperBackward& p) {
    const std::int64_t tokens = rounded(p.T), queries = p.B * p.H * tokens, keys = p.H == p.K ? 0 : p.B * p.K * tokens;
    std::int64_t end = 0;
    const auto floats = [&](std::int64_t n) { return std::exchange(end, end + 4 * n); };
    dots = floats(queries), stats = floats(queries), dq = floats(queries * width(p.D));
    zeros = end, dk = floats(keys * width(p.D)), dv = floats(keys * width(p.D));
    dk_turns = floats(keys / kTile), dv_turns = floats(keys / kTile), dq_turns = floats(queries / (kTile / 2)),
    bytes = end;
  }
};

template <int kWidth, bool kShared>
void launch(Flash_bwd_params& params, cudaStream_t stream) {
  using Number = cutlass::bfloat16_t;
  constexpr int kQueries = kWidth == 64 ? 128 : 64;
  run_flash_bwd<90, kWidth, kQueries, kTile, Number, /*Is_causal=*/true, false, false, false, /*Deterministic=*/true,
                kShared, 2, 2, /*SdP_swapAB=*/true, false, false, 2, 1, 2, kQueries / 64>(params, stream);
}

}  // namespace

bool hopper_fits(std::int64_t B, std::int64_t T, std::int64_t H, std::int64_t K, std::int64_t D) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;  // the kernels count the numbers of a sample in 32 bits
  return B > 0 && T > 0 && D % 8 == 0 && (D <= 64 || (D <= 128 && H != K)) && H * rounded(T) * width(D) < kMost;
}

std::int64_t hopper_workspace(const HopperBackward& problem) { return Workspace(problem).bytes; }

void hopper_backward(const HopperBackward& problem, void* workspace, cudaStream_t stream) {
  const Workspace at(problem);
  char* const first = static_cast<char*>(workspace);
  Flash_bwd_params params;
  std::memset(&params, 0, sizeof params);
  const auto put = [](const HopperPlace& place, auto& to, auto& sample, auto& token) {
    to = place.first, sample = place.sample, token = place.token;
  };
  put(problem.q, params.q_ptr, params.q_batch_stride, params.q_row_stride);
  put(problem.k, params.k_ptr, params.k_batch_stride, params.k_row_stride);
  put(problem.v, params.v_ptr, params.v_batch_stride, params.v_row_stride);
  put(problem.out, params.o_ptr, params.o_batch_stride, params.o_row_stride);
  put(problem.dout, params.do_ptr, params.do_batch_stride, params.do_row_stride);
  put(problem.dq, params.dq_ptr, params.dq_batch_stride, params.dq_row_stride);
  put(problem.dk, params.dk_ptr, params.dk_batch_stride, params.dk_row_stride);
  put(problem.dv, params.dv_ptr, params.dv_batch_stride, params.dv_row_stride);
  const auto D = static_cast<int>(problem.D), T = static_cast<int>(problem.T), B = static_cast<int>(problem.B);
  for (auto* stride : {&params.q_head_stride, &params.k_head_stride, &params.v_head_stride, &params.o_head_stride})
    *stride = D;
  for (auto* stride : {&params.do_head_stride, &params.dq_head_stride, &params.dk_head_stride, &params.dv_head_stride})
    *stride = D;
  params.b = B, params.h = static_cast<int>(problem.H), params.h_k = static_cast<int>(problem.K);
  params.seqlen_q = params.seqlen_k = T, params.total_q = params.total_k = B * T;
  params.seqlen_q_rounded = params.seqlen_k_rounded = static_cast<int>(rounded(T));
  params.d = params.dv = D, params.d_rounded = params.dv_rounded = static_cast<int>(width(D));
  params.scale_softmax = problem.scale, params.softmax_lse_ptr = problem.stats;
  params.window_size_left = -1, params.is_causal = params.is_bf16 = params.deterministic = true;
  params.dsoftmax_sum = first + at.dots, params.softmax_lse_log2_ptr = first + at.stats;
  params.dq_accum_ptr = first + at.dq, params.dk_accum_ptr = first + at.dk, params.dv_accum_ptr = first + at.dv;
  const auto turns = [&](std::int64_t place) { return reinterpret_cast<int*>(first + place); };
  params.dq_semaphore = turns(at.dq_turns), params.dk_semaphore = turns(at.dk_turns);
  params.dv_semaphore = turns(at.dv_turns);
  require_launched(cudaMemsetAsync(first + at.zeros, 0, at.bytes - at.zeros, stream));
  if (width(D) == 128) return launch<128, true>(params, stream);
  problem.H == problem.K ? launch<64, false>(params, stream) : launch<64, true>(params, stream);
}

}  // namespace zs::kernel::cuda
