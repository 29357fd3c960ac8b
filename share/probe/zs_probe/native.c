// SPDX-License-Identifier: Apache-2.0
// Digest, sum of squares and sketch of stretches of tensors (cut.py, sketch.py) on processors, in one read.
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ROW = 65536, WIDTH = 4096, LANES = 8, PATTERNS = 8 };
enum Type { F32, F64, BF16, F16, I8, I16, I32, I64, U8 };
typedef double Numbers __attribute__((vector_size(64)));
typedef int64_t Words __attribute__((vector_size(64)));
typedef uint64_t Bits __attribute__((vector_size(64)));
typedef float Singles __attribute__((vector_size(32)));
typedef int32_t Ints __attribute__((vector_size(32)));
typedef int16_t Shorts __attribute__((vector_size(16)));
typedef int8_t Bytes __attribute__((vector_size(8)));
typedef uint8_t Naturals __attribute__((vector_size(8)));

struct Stretch {
  int64_t tensor, base, begin, end, column;
};

struct Sums {
  int64_t digest;
  double squares, sketch[PATTERNS];
};

struct Work {
  const struct Stretch* stretches;
  int64_t count;
  const char* const* addresses;
  const int32_t* wanted;  // of each tensor whether it is read; or null: each
  int type, digests_only;
  const int64_t *hashes, *factors, *row_signs;
  struct Sums* sums;
  int64_t next;
};

static const int kSize[] = {4, 8, 2, 2, 1, 2, 4, 8, 1};

#define LOAD(Kind, name, from) \
  Kind name;                   \
  memcpy(&name, from, sizeof name)

// Eight elements: their patterns as signed integers, and their values.
static inline __attribute__((always_inline)) void load(const char* from, const int type, Bits* bits, Numbers* values) {
  if (type == F32) {
    LOAD(Singles, x, from);
    *bits = (Bits)__builtin_convertvector((Ints)x, Words);
    *values = __builtin_convertvector(x, Numbers);
  } else if (type == F64) {
    LOAD(Numbers, x, from);
    *bits = (Bits)x;
    *values = x;
  } else if (type == BF16) {
    LOAD(Shorts, x, from);
    const Ints wide = __builtin_convertvector(x, Ints);
    *bits = (Bits)__builtin_convertvector(x, Words);
    *values = __builtin_convertvector((Singles)(wide << 16), Numbers);
  } else if (type == F16) {
    LOAD(Shorts, x, from);
    const Words all = __builtin_convertvector(x, Words);
    *bits = (Bits)all;
    const Words exponent = all >> 10 & 31, fraction = all & 1023, sign = all << 48 & INT64_MIN;
    const Words normal = (exponent + 1008) << 52 | fraction << 42;  // of 1.fraction x 2^(exponent - 15)
    const Words endless = fraction << 42 | 0x7ff0000000000000;
    const Numbers small = __builtin_convertvector(fraction, Numbers) * 0x1p-24;
    const Words is_small = exponent == 0, is_endless = exponent == 31;
    *values = (Numbers)((is_small & (Words)small) | (is_endless & endless) | (~(is_small | is_endless) & normal) | sign);
  } else if (type == I64) {
    LOAD(Words, x, from);
    *bits = (Bits)x;
    *values = __builtin_convertvector(x, Numbers);
  } else if (type == U8) {
    LOAD(Naturals, x, from);
    *bits = (Bits)__builtin_convertvector((Bytes)x, Words);
    *values = __builtin_convertvector(__builtin_convertvector(x, Words), Numbers);
  } else {
    Words wide;
    if (type == I32) {
      LOAD(Ints, x, from);
      wide = __builtin_convertvector(x, Words);
    } else if (type == I16) {
      LOAD(Shorts, x, from);
      wide = __builtin_convertvector(x, Words);
    } else {
      LOAD(Bytes, x, from);
      wide = __builtin_convertvector(x, Words);
    }
    *bits = (Bits)wide;
    *values = __builtin_convertvector(wide, Numbers);
  }
}

struct Lanes {
  Bits digest;
  Numbers squares, sketch[PATTERNS];
};

// Adds eight elements. row_signs: the row's hash; the digest's factor of the row is the caller's.
static inline __attribute__((always_inline)) void add(struct Lanes* into, const char* from, const int64_t* hashes, Bits row_signs,
                                                      const int type, const int digests_only) {
  LOAD(Bits, hash, hashes);
  Bits bits;
  Numbers values;
  load(from, type, &bits, &values);
  into->digest += bits * (hash | 1);
  if (digests_only) return;
  into->squares += values * values;
  const Bits signs = hash ^ row_signs;  // of pattern k: bit 8 + k
#pragma GCC unroll 8
  for (int k = 0; k < PATTERNS; ++k)
    into->sketch[k] += (Numbers)((Bits)values ^ (signs << (55 - k) & 0x8000000000000000u));
}

static inline __attribute__((always_inline)) void measure(const struct Work* work, const struct Stretch* s, struct Sums* into,
                                                          const int type, const int digests_only) {
  const int size = kSize[type];
  struct Lanes sums = {};
  Bits digest = {};
  for (int64_t row = s->begin / ROW; row * ROW < s->end; ++row) {
    const int64_t start = row * ROW;
    const int64_t low = s->begin > start + s->column ? s->begin - start : s->column;
    const int64_t high = s->end < start + s->column + WIDTH ? s->end - start : s->column + WIDTH;
    const char* const from = work->addresses[s->tensor] + (start - s->base) * size;
    const Bits row_signs = (Bits){} + (uint64_t)work->row_signs[row];
    sums.digest = (Bits){};
    int64_t c = low;
    for (; c + LANES <= high; c += LANES) add(&sums, from + c * size, work->hashes + c, row_signs, type, digests_only);
    if (c < high) {
      char rest[LANES * 8] = {0};
      memcpy(rest, from + c * size, (size_t)((high - c) * size));
      add(&sums, rest, work->hashes + c, row_signs, type, digests_only);
    }
    digest += sums.digest * (uint64_t)work->factors[row];
  }
  uint64_t whole = 0;
  for (int i = 0; i < LANES; ++i) whole += digest[i];
  into->digest = (int64_t)whole;
  into->squares = 0;
  for (int i = 0; i < LANES; ++i) into->squares += sums.squares[i];
  for (int k = 0; k < PATTERNS; ++k) {
    into->sketch[k] = 0;
    for (int i = 0; i < LANES; ++i) into->sketch[k] += sums.sketch[k][i];
  }
}

// What is compiled for another machine chooses there among these.
#if defined(ZS_PORTABLE) && defined(__x86_64__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
static void one(const struct Work* work, int64_t number) {
  const struct Stretch* const s = work->stretches + number;
  struct Sums* const into = work->sums + number;
  if (work->wanted && !work->wanted[s->tensor]) {
    memset(into, 0, sizeof *into);
    return;
  }
#define OF(type)                           \
  case type:                               \
    if (work->digests_only)                \
      measure(work, s, into, type, 1);     \
    else                                   \
      measure(work, s, into, type, 0);     \
    return;
  switch (work->type) { OF(F32) OF(F64) OF(BF16) OF(F16) OF(I8) OF(I16) OF(I32) OF(I64) OF(U8) }
}

static void* run(void* given) {
  struct Work* const work = given;
  for (;;) {
    const int64_t at = __atomic_fetch_add(&work->next, 16, __ATOMIC_RELAXED);
    if (at >= work->count) return 0;
    for (int64_t i = at; i < at + 16 && i < work->count; ++i) one(work, i);
  }
}

// Reads `count` stretches with so many threads, and adds their sums up, in order, to `slots` slots: out has first the digests
// of all slots, then the sums of squares, then the sketches. sums: room for `count`. No number depends on the threads.
void zs_measure(const struct Stretch* stretches, int64_t count, const char* const* addresses, const int32_t* wanted, int type,
                int digests_only, const int64_t* hashes, const int64_t* factors, const int64_t* row_signs, int threads,
                struct Sums* sums, int64_t slots, const int64_t* first, double* out) {
  struct Work work = {stretches, count, addresses, wanted, type, digests_only, hashes, factors, row_signs, sums, 0};
  pthread_t helpers[64];
  int helping = 0;
  while (helping < threads - 1 && helping < 64 && helping < count / 64 && !pthread_create(helpers + helping, 0, run, &work))
    ++helping;
  run(&work);
  for (int i = 0; i < helping; ++i) pthread_join(helpers[i], 0);
  for (int64_t slot = 0; slot < slots; ++slot) {
    uint64_t digest = 0;
    double squares = 0, sketch[PATTERNS] = {0};
    for (int64_t i = first[slot]; i < first[slot + 1]; ++i) {
      digest += (uint64_t)sums[i].digest;
      squares += sums[i].squares;
      for (int k = 0; k < PATTERNS; ++k) sketch[k] += sums[i].sketch[k];
    }
    memcpy(out + slot, &digest, sizeof digest);
    out[slots + slot] = squares;
    memcpy(out + 2 * slots + slot * PATTERNS, sketch, sizeof sketch);
  }
}

// The elements at `places` of tensors of one type, in float64.
void zs_pick(const char* const* addresses, const int64_t* tensors, const int64_t* places, int type, int64_t count, double* out) {
  for (int64_t i = 0; i < count; ++i) {
    char held[LANES * 8] = {0};
    memcpy(held, addresses[tensors[i]] + places[i] * kSize[type], (size_t)kSize[type]);
    Bits bits;
    Numbers values;
    load(held, type, &bits, &values);
    out[i] = values[0];
  }
}

// Where a row's numbers lie among those that came from a device: of `count` slots.
struct Place {
  int64_t digests, squares, sketch, count;
};

static char* text_of(char* to, const char* text) {
  const size_t size = strlen(text);
  memcpy(to, text, size);
  return to + size;
}

static char* base64(char* to, const unsigned char* from, int64_t size) {
  static const char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (int64_t i = 0; i < size; i += 3) {
    const int64_t left = size - i;
    const uint32_t bits = (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) | (left > 2 ? from[i + 2] : 0);
    *to++ = kDigits[bits >> 18];
    *to++ = kDigits[bits >> 12 & 63];
    *to++ = left > 1 ? kDigits[bits >> 6 & 63] : '=';
    *to++ = left > 2 ? kDigits[bits & 63] : '=';
  }
  return to;
}

// JSON texts of `count` rows, joined by ", ": `heads` has what is said of each before its numbers, one after another, `sizes`
// their bytes. digests: room for the rows' digests. `to`: room for the heads, and for 160 and 88 for each slot, a row. Returns
// the bytes written.
int64_t zs_rows(int64_t count, const char* heads, const int64_t* sizes, const struct Place* places, const double* numbers,
                uint64_t* digests, char* to) {
  char* const begin = to;
  for (int64_t row = 0; row < count; ++row) {
    const struct Place* const p = places + row;
    double squares = 0;
    digests[row] = 0;
    for (int64_t i = 0; i < p->count; ++i) {
      uint64_t part;
      memcpy(&part, numbers + p->digests + i, sizeof part);
      digests[row] += part;
      squares += numbers[p->squares + i];
    }
    if (row) to = text_of(to, ", ");
    memcpy(to, heads, (size_t)sizes[row]);
    to += sizes[row], heads += sizes[row];
    to += snprintf(to, 48, ", \"digest\": \"%016llx\", ", (unsigned long long)digests[row]);
    char* const number = to;
    if (isnan(squares))  // of either sign: printf would write "-nan"
      to = text_of(to, "\"squares\": \"nan\"");
    else
      to += snprintf(to, 64, isfinite(squares) ? "\"squares\": %.17g" : "\"squares\": \"%g\"", squares);
    for (char* c = number; c < to; ++c)
      if (*c == ',') *c = '.';  // of a locale
    to = text_of(to, ", \"sketch\": \"");
    to = base64(to, (const unsigned char*)(numbers + p->sketch), p->count * PATTERNS * 8);
    to = text_of(to, "\"}");
  }
  return to - begin;
}

// Puts behind each head the text of its elements: `counts` numbers from `places` on; none where there are 0. `to`: room for the heads, and
// for 32 and 11 for each number, a row. Writes what they are long then to `sizes`; returns the bytes written.
int64_t zs_heads(int64_t count, const char* heads, int64_t* sizes, const int64_t* places, const int64_t* counts, const double* numbers, char* to) {
  char* const begin = to;
  for (int64_t row = 0; row < count; ++row) {
    memcpy(to, heads, (size_t)sizes[row]);
    char* const from = to;
    to += sizes[row], heads += sizes[row];
    if (counts[row]) {
      to = text_of(to, ", \"elements\": \"");
      to = base64(to, (const unsigned char*)(numbers + places[row]), counts[row] * 8);
      to = text_of(to, "\"");
    }
    sizes[row] = to - from;
  }
  return to - begin;
}
