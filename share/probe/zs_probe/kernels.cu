// SPDX-License-Identifier: Apache-2.0
// Digest, sum of squares and sketch of stretches of tensors (cut.py, sketch.py) on GPUs, in one read and one launch.
// kernels.py compiles it by NVRTC for one type of elements: KIND, the number of a type in kernels.py. The numbers do
// not depend on timing: each block writes its own, and the last block of a slot adds them up in order.
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned u32;

#define ROW 65536
#define WIDTH 4096
#define THREADS 128

#if KIND == 0  // float32
typedef int Bits;
__device__ double value(Bits x) { return __int_as_float(x); }
#elif KIND == 1               // float64
typedef i64 Bits;
__device__ double value(Bits x) { return __longlong_as_double(x); }
#elif KIND == 2               // bfloat16
typedef short Bits;
__device__ double value(Bits x) { return __int_as_float((int)x << 16); }
#elif KIND == 3               // float16
typedef short Bits;
__device__ double value(Bits x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x));
  return wide;
}
#elif KIND == 4 || KIND == 8  // int8, uint8
typedef signed char Bits;
__device__ double value(Bits x) { return KIND == 8 ? (int)(unsigned char)x : (int)x; }
#elif KIND == 5               // int16
typedef short Bits;
__device__ double value(Bits x) { return (int)x; }
#elif KIND == 6               // int32
typedef int Bits;
__device__ double value(Bits x) { return x; }
#else                         // int64
typedef i64 Bits;
__device__ double value(Bits x) { return (double)x; }
#endif
#define MANY (sizeof(Bits) == 8 ? 2 : sizeof(Bits) == 4 ? 4 : 8)  // elements that a thread loads at once

struct Stretch {
  i64 tensor, base, begin, end, column;
};

struct Launch {
  const Stretch* stretches;
  const int* slot_of;    // of each stretch
  const i64* first;      // stretch of each slot, and one more
  const i64* addresses;  // of the tensors; null: of the only one `address`
  i64 address;
  const int* wanted;  // of each tensor whether it is read; null: each
  const u64* hashes;
  const u32* signs;  // [8][ROW / 32]: a column's bit of each pattern
  const u64* factors;
  const u64* row_signs;
  i64* sums;          // [stretches][16], for a time
  int* ended;         // stretches of each slot; 0 before and after
  i64* out;           // digests of all slots, sums of squares, sketches; 0 before
  const i64* before;  // digests of a reading before, or null
  int* changed;       // of each tensor whether they are others now
  i64 slots;
};

// The digest's sum of products modulo 2^64: of short patterns by 32 bits of a weight at a time.
struct Digest {
  u64 low;
  u32 high;
  __device__ void add(Bits bits, u64 weight) {
    if (sizeof(Bits) == 8) {
      low += (u64)bits * weight;
    } else {
      const int down = (int)weight;
      asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(low) : "r"((int)bits), "r"(down));
      high += (u32)bits * ((u32)(weight >> 32) + ((u32)down >> 31));
    }
  }
  __device__ u64 sum() const { return low + ((u64)high << 32); }
};

// A value whose sign turns where bit 31 of `turn` is set.
__device__ double turned(double value, u32 turn) {
  return __hiloint2double(__double2hiint(value) ^ (int)(turn & 0x80000000u), __double2loint(value));
}

__device__ double all_of(double value) {
  for (int by = 16; by; by /= 2) value += __shfl_xor_sync(~0u, value, by);
  return value;
}

__device__ u64 all_of(u64 value) {
  for (int by = 16; by; by /= 2) value += __shfl_xor_sync(~0u, value, by);
  return value;
}

// Of 8 vectors over the lanes the sums, each by the same additions as all_of(): number lane / 4.
__device__ double eighth_of(const double (&values)[8], int lane) {
  double kept[4];
#pragma unroll
  for (int half = 4; half; half /= 2) {  // a lane keeps one half of its values, and gets its partner's of them
    const bool upper = lane & 4 * half;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const double low = half == 4 ? values[i] : kept[i], high = half == 4 ? values[i + half] : kept[i + half];
      kept[i] = (upper ? high : low) + __shfl_xor_sync(~0u, upper ? low : high, 4 * half);
    }
  }
  for (int by = 2; by; by /= 2) kept[0] += __shfl_xor_sync(~0u, kept[0], by);
  return kept[0];
}

struct Sums {
  u64 digest;
  double squares, sketch[8];
};

// Adds to `sums` the products of elements and signs of 4 G rows, exact but for the rounding of sums: by the tensor cores in
// float64. A warp has 16 columns: lane 4 c + r has rows r, r + 4, ... of column c in the even places of `values` and of column
// c + 8 in the odd ones, and those rows' signs of pattern c; it gets the sums of patterns 2 r and 2 r + 1 of both columns.
template <int G>
__device__ void multiply(double (&sums)[4], const double (&values)[2 * G], const double (&signs)[G]) {
#if __CUDA_ARCH__ >= 900
  if constexpr (G == 4)
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
        "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
        : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
        : "d"(values[0]), "d"(values[1]), "d"(values[2]), "d"(values[3]), "d"(values[4]), "d"(values[5]), "d"(values[6]),
          "d"(values[7]), "d"(signs[0]), "d"(signs[1]), "d"(signs[2]), "d"(signs[3]));
  else
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
        : "d"(values[0]), "d"(values[1]), "d"(signs[0]));
#elif __CUDA_ARCH__ >= 800
#pragma unroll
  for (int i = 0; i < 2 * G; ++i)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(sums[i % 2 * 2]), "+d"(sums[i % 2 * 2 + 1])
        : "d"(values[i]), "d"(signs[i / 2]));
#endif
}

// Rows [first, end), at most 4 G, of all WIDTH columns: `from` is the first row's column 0. A warp takes MANY x 8 columns of
// all rows at a time, of 4 rows four times as many; two of the MANY in one product. The columns' signs come when all rows
// are added.
template <bool whole, int G>
__device__ void tall(const Launch& l, const Bits* from, i64 first, int rows, int column, Sums* sums) {
#if __CUDA_ARCH__ >= 800
  const int lane = threadIdx.x % 32, group = lane / 4, place = lane % 4, step = THREADS / 32 * 8 * MANY;
  Digest digests[G] = {};
  double signs[G], squares[2] = {}, sketch[2] = {};
#pragma unroll
  for (int g = 0; g < G; ++g) {
    const int row = 4 * g + place;
    signs[g] = whole && row < rows && l.row_signs[first + row] >> (8 + group) & 1 ? -1 : 1;
  }
  union Loaded {
    Bits x[MANY];
    uint4 wide;
    uint2 half;
  };
  Loaded next[4];
  const auto load = [&](int at) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = 4 * (i % G) + place;
      const Bits* const p = from + (i64)row * ROW + at + i / G * step + group * MANY;
      next[i].wide = make_uint4(0, 0, 0, 0);
      if (row >= rows) continue;
      if ((i64)p % (MANY * sizeof(Bits))) {
        for (int j = 0; j < MANY; ++j) next[i].x[j] = p[j];
      } else if (MANY * sizeof(Bits) == 16) {
        next[i].wide = __ldcs((const uint4*)p);
      } else {
        next[i].half = __ldcs((const uint2*)p);
      }
    }
  };
  int at = column + threadIdx.x / 32 * 8 * MANY;
  load(at);
  for (; at < column + WIDTH; at += 4 / G * step) {
    Loaded now[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) now[i] = next[i];
    if (at + 4 / G * step < column + WIDTH) load(at + 4 / G * step);
#pragma unroll
    for (int c = 0; c < 4 / G; ++c) {
      const int here = at + c * step + group * MANY;
      u32 turns[2] = {};
#pragma unroll
      for (int k = 0; whole && k < 2; ++k) turns[k] = l.signs[(2 * place + k) * (ROW / 32) + here / 32] >> here % 32;
#pragma unroll
      for (int j = 0; j < MANY; j += 2) {
        const u64 weights[2] = {l.hashes[here + j] | 1, l.hashes[here + j + 1] | 1};
        double values[2 * G], sums[4] = {};
#pragma unroll
        for (int i = 0; i < 2 * G; ++i) {
          const Bits x = now[c * G + i / 2].x[j + i % 2];
          digests[i / 2].add(x, weights[i % 2]);
          values[i] = value(x);
          if (whole) squares[i % 2] = fma(values[i], values[i], squares[i % 2]);
        }
        if (!whole) continue;
        multiply<G>(sums, values, signs);
#pragma unroll
        for (int i = 0; i < 4; ++i) sketch[i % 2] += turned(sums[i], turns[i % 2] << (31 - j - i / 2));
      }
    }
  }
  u64 digest = 0;
#pragma unroll
  for (int g = 0; g < G; ++g)
    if (4 * g + place < rows) digest += digests[g].sum() * l.factors[first + 4 * g + place];
  digest = all_of(digest);
  for (int k = 0; whole && k < 2; ++k) {
    for (int by = 4; by < 32; by *= 2) sketch[k] += __shfl_xor_sync(~0u, sketch[k], by);
    if (group == 0) sums->sketch[2 * place + k] = sketch[k];
  }
  const double squared = whole ? all_of(squares[0] + squares[1]) : 0;
  if (lane == 0) sums->digest = digest, sums->squares = squared;
#endif
}

// The elements [begin, end) of WIDTH columns, one after another; those of the next turn are on their way meanwhile.
template <bool whole>
__device__ void plain(const Launch& l, const Bits* held, const Stretch& s, Sums* sums) {
  const int together = 8;
  double squares = 0, sketch[8] = {};
  u64 digest = 0;
  for (i64 row = s.begin / ROW; row * ROW < s.end; ++row) {
    const i64 start = row * ROW;
    const int low = (int)max(s.begin - start, s.column), high = (int)min(s.end - start, s.column + WIDTH);
    const Bits* const from = held + (start - s.base);
    const u32 row_sign = whole ? (u32)l.row_signs[row] : 0;
    Digest of_row = {};
    Bits next[together];
    u64 hashes[together];
    const auto load = [&](int at) {
#pragma unroll
      for (int j = 0; j < together; ++j) {
        next[j] = at + j * THREADS < high ? from[at + j * THREADS] : 0;
        hashes[j] = l.hashes[at + j * THREADS];
      }
    };
    load(low + threadIdx.x);
    for (int at = low + threadIdx.x; at < high; at += THREADS * together) {
      Bits x[together];
      u64 hash[together];
#pragma unroll
      for (int j = 0; j < together; ++j) x[j] = next[j], hash[j] = hashes[j];
      if (at + THREADS * together < high) load(at + THREADS * together);
#pragma unroll
      for (int j = 0; j < together; ++j) {
        of_row.add(x[j], hash[j] | 1);
        if (whole) {
          const double v = value(x[j]);
          squares = fma(v, v, squares);
          const u32 turns = (u32)hash[j] ^ row_sign;
#pragma unroll
          for (int k = 0; k < 8; ++k) sketch[k] += turned(v, turns << (23 - k));
        }
      }
    }
    digest += of_row.sum() * l.factors[row];
  }
  digest = all_of(digest);
  const int lane = threadIdx.x % 32;
  if (whole) {
    squares = all_of(squares);
    const double of_pattern = eighth_of(sketch, lane);
    if (lane % 4 == 0) sums->sketch[lane / 4] = of_pattern;
  }
  if (lane == 0) sums->digest = digest, sums->squares = squares;
}

template <bool whole>
__device__ void read(const Launch& l) {
  __shared__ Sums of_warp[THREADS / 32];
  __shared__ i64 parts[THREADS];
  __shared__ bool last;
  const i64 number = blockIdx.x;
  const Stretch s = l.stretches[number];
  if (l.wanted && !l.wanted[s.tensor]) return;  // as each other stretch of its slots
  const Bits* const held = (const Bits*)(l.addresses ? l.addresses[s.tensor] : l.address);
  i64 first = s.begin / ROW, end = (s.end + ROW - 1) / ROW;
  if (s.begin >= first * ROW + s.column + WIDTH) ++first;
  if (s.end <= (end - 1) * ROW + s.column) --end;
  const bool covered = s.begin <= first * ROW + s.column && s.end >= (end - 1) * ROW + s.column + WIDTH;
#if __CUDA_ARCH__ >= 800
  const Bits* const from = held + (first * ROW - s.base);
  if (covered && end - first > 4)
    tall<whole, 4>(l, from, first, (int)(end - first), (int)s.column, of_warp + threadIdx.x / 32);
  else if (covered && end - first > 1)
    tall<whole, 1>(l, from, first, (int)(end - first), (int)s.column, of_warp + threadIdx.x / 32);
  else
#endif
    plain<whole>(l, held, s, of_warp + threadIdx.x / 32);
  __syncthreads();
  const int which = threadIdx.x % 16, lane = threadIdx.x / 16;
  const int numbers = whole ? 10 : 1;
  const auto add = [&](i64& into, i64 part) {
    into = which ? __double_as_longlong(__longlong_as_double(into) + __longlong_as_double(part)) : into + part;
  };
  if (threadIdx.x < numbers) {
    i64 sum = 0;
    for (const Sums& one : of_warp) add(sum, ((const i64*)&one)[which]);
    __stcg(l.sums + number * 16 + which, sum);
    __threadfence();
  }
  __syncthreads();
  const int slot = l.slot_of[number];
  const i64 begin = l.first[slot], stop = l.first[slot + 1];
  if (threadIdx.x == 0) last = atomicAdd(l.ended + slot, 1) == stop - begin - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  i64 sum = 0;
  if (which < numbers)
    for (i64 at = begin + lane; at < stop; at += THREADS / 16) add(sum, __ldcg(l.sums + at * 16 + which));
  parts[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= numbers) return;
  for (int i = 1; i < THREADS / 16; ++i) add(sum, parts[i * 16 + which]);
  l.out[which < 2 ? which * l.slots + slot : 2 * l.slots + slot * 8 + which - 2] = sum;
  if (which) return;
  l.ended[slot] = 0;
  if (l.before && l.before[slot] != sum) l.changed[s.tensor] = 1;
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) read_all(Launch l) { read<true>(l); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) read_digests(Launch l) { read<false>(l); }

// The elements at `places` of tensors, in float64.
extern "C" __global__ void pick(const i64* addresses, const i64* tensors, const i64* places, double* out, i64 count) {
  const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
  if (i < count) out[i] = value(((const Bits*)addresses[tensors[i]])[places[i]]);
}
