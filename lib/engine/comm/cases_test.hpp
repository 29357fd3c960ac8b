// SPDX-License-Identifier: Apache-2.0
// For tests: the contract of every group, as functions that each rank calls and that throw zs::Error at a violation.
// group_test.cpp runs them on threads, tests/mpi/ranks.cpp on processes.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "comm/group.hpp"
#include "device/arithmetic.hpp"

namespace zs::comm::cases {

/// A float that depends only on seed, rank and index; its sums depend on the order of addition.
inline float value(int seed, int rank, std::int64_t i) {
  auto x = static_cast<std::uint64_t>(seed) * 1000003 + static_cast<std::uint64_t>(rank) * 7919;
  x = (x + static_cast<std::uint64_t>(i)) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9;
  return (static_cast<float>(x >> 40) - 8388608.0f) / static_cast<float>(std::uint64_t{1} << (20 + (x & 7)));
}

/// The definition of the canonical sum over ranks [begin, end) at element i.
inline float serial(int seed, int begin, int end, std::int64_t i) {
  if (end - begin == 1) return value(seed, begin, i);
  const int half = begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(end - begin - 1)));
  return serial(seed, begin, half, i) + serial(seed, half, end, i);
}

inline void require(bool holds, const char* what, std::int64_t index = 0) {
  if (!holds) throw Error("test: " + std::string(what) + ", element or rank " + std::to_string(index));
}

inline void require_bits(float a, float b, const char* what, std::int64_t index) {
  require(std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b), what, index);
}

/// The memory of a case's buffers.
enum class Memory {
  allocated,  ///< Group::allocate on every rank
  ordinary,   ///< the heap on every rank
  mixed,      ///< the heap on odd ranks
};

/// A buffer of n elements, filled with a pattern that no result contains.
template <typename T>
std::shared_ptr<T[]> buffer(Group& group, Memory memory, std::int64_t n) {
  const device::Buffer shared = group.allocate(n * static_cast<std::int64_t>(sizeof(T)));
  require(reinterpret_cast<std::uintptr_t>(shared.data()) % 64 == 0, "allocate() is not aligned");
  std::shared_ptr<T[]> values(std::make_shared<device::Buffer>(shared), reinterpret_cast<T*>(shared.data()));
  if (memory == Memory::ordinary || (memory == Memory::mixed && group.rank() % 2 == 1)) {
    values = std::make_shared<T[]>(static_cast<std::size_t>(n));
  }
  std::memset(static_cast<void*>(values.get()), 0xa5, static_cast<std::size_t>(n) * sizeof(T));
  return values;
}

inline void reduce_scatter(Group& group, std::int64_t n, int seed, Memory memory, bool in_place) {
  const Slice local = slice(n, group.rank(), group.size());
  const auto full = buffer<float>(group, memory, n + 1), separate = buffer<float>(group, memory, local.size() + 1);
  float* const mine = in_place ? full.get() + local.begin : separate.get();
  for (std::int64_t i = 0; i < n; ++i) full[i] = value(seed, group.rank(), i);
  const float guard = mine[local.size()];
  const std::int64_t before = group.bytes_sent();
  group.reduce_scatter(device::view(full.get(), n), device::view(mine, local.size()), "reduce-scatter of case")->wait();
  require(group.bytes_sent() - before == 4 * (n - local.size()), "bytes of reduce_scatter");
  for (std::int64_t i = 0; i < local.size(); ++i) {
    require_bits(mine[i], serial(seed, 0, group.size(), local.begin + i), "reduce_scatter", i);
  }
  require_bits(mine[local.size()], guard, "behind the slice", local.size());
  for (std::int64_t i = 0; i < n; ++i) {
    if (in_place && i >= local.begin && i < local.end) continue;
    require_bits(full[i], value(seed, group.rank(), i), "the operand", i);
  }
}

/// 16-bit numbers are sent unchanged, in half the bytes, and widened before they are added.
template <typename T>
void reduce_scatter_narrow(Group& group, std::int64_t n, int seed, Memory memory) {
  const Slice local = slice(n, group.rank(), group.size());
  const auto full = buffer<T>(group, memory, n);
  const auto mine = buffer<float>(group, memory, local.size() + 1);
  // Every bit pattern of a finite number, including small exponents of float16.
  const auto bits_of = [&](int rank, std::int64_t i) {
    const auto bits = std::bit_cast<std::uint32_t>(value(seed, rank, i));
    return static_cast<std::uint16_t>((bits >> 16 & 0x83ff) | (bits & 0x3c00));
  };
  for (std::int64_t i = 0; i < n; ++i) full[i] = {bits_of(group.rank(), i)};
  const float guard = mine[local.size()];
  const std::int64_t before = group.bytes_sent();
  group.reduce_scatter(device::view(full.get(), n), device::view(mine.get(), local.size()), "narrow sum")->wait();
  require(group.bytes_sent() - before == 2 * (n - local.size()), "bytes of a narrow reduce_scatter");
  std::vector<float> wide(static_cast<std::size_t>(n)), expected(static_cast<std::size_t>(local.size()));
  for (std::int64_t i = 0; i < n; ++i) wide[static_cast<std::size_t>(i)] = device::widen(full[i]);
  group.reduce_scatter(device::view(wide.data(), n), device::view(expected.data(), local.size()), "wide sum")->wait();
  for (std::int64_t i = 0; i < local.size(); ++i)
    require_bits(mine[i], expected[static_cast<std::size_t>(i)], "narrow reduce_scatter", i);
  require_bits(mine[local.size()], guard, "behind the slice", local.size());
}

template <typename T>
void all_gather(Group& group, std::int64_t n, Memory memory, bool in_place) {
  const Slice local = slice(n, group.rank(), group.size());
  const auto full = buffer<T>(group, memory, n + 1);
  const auto separate = buffer<T>(group, memory, local.size());
  T* mine = in_place ? full.get() + local.begin : separate.get();
  const T guard = full[n];
  for (std::int64_t i = 0; i < local.size(); ++i) mine[i] = static_cast<T>((local.begin + i) * 31 + 5);
  const std::int64_t before = group.bytes_sent();
  const auto view = [](T* values, std::int64_t count) {
    if constexpr (sizeof(T) == 2)
      return device::view(reinterpret_cast<device::Float16*>(values), count);
    else
      return device::view(values, count);
  };
  group.all_gather(view(mine, local.size()), view(full.get(), n), "all-gather of case")->wait();
  require(group.bytes_sent() - before == local.size() * (group.size() - 1) * static_cast<std::int64_t>(sizeof(T)),
          "bytes of all_gather");
  for (std::int64_t i = 0; i < n; ++i) {
    require(full[i] == static_cast<T>(i * 31 + 5), "all_gather", i);
  }
  require(full[n] == guard, "behind the gathered elements");
}

/// Several all-gathers as one collective: the numbers and
/// bytes of each. `count` of them, some empty on a rank.
inline void all_gather_coalesced(Group& group, int count, Memory memory) {
  const auto n_of = [](int k) { return std::int64_t{k} * k * k * 97 + k % 3; };
  std::vector<std::shared_ptr<float[]>> full, mine;
  std::vector<Gathered> gathers;
  std::int64_t sent = 0;
  for (int k = 0; k < count; ++k) {
    const Slice local = slice(n_of(k), group.rank(), group.size());
    full.push_back(buffer<float>(group, memory, n_of(k) + 1));
    mine.push_back(buffer<float>(group, memory, local.size() + 1));
    for (std::int64_t i = 0; i < local.size(); ++i) mine.back()[i] = value(k, 0, local.begin + i);
    gathers.push_back({device::view(mine.back().get(), local.size()), device::view(full.back().get(), n_of(k))});
    sent += local.size() * (group.size() - 1) * 4;
  }
  const std::int64_t bytes = group.bytes_sent(), collectives = group.collectives();
  group.all_gather_coalesced(gathers, "gathers of case")->wait();
  require(group.bytes_sent() - bytes == sent, "bytes of all_gather_coalesced");
  require(group.collectives() - collectives == 1, "one collective");
  for (int k = 0; k < count; ++k) {
    const auto& values = full[static_cast<std::size_t>(k)];
    for (std::int64_t i = 0; i < n_of(k); ++i) require_bits(values[i], value(k, 0, i), "all_gather_coalesced", i);
  }
}

inline void all_to_all(Group& group, std::int64_t each, Memory memory) {
  const std::int64_t n = each * group.size();
  const auto full = buffer<float>(group, memory, n), received = buffer<float>(group, memory, n + 1);
  for (std::int64_t i = 0; i < n; ++i) full[i] = value(5, group.rank(), i);
  const float guard = received[n];
  const std::int64_t before = group.bytes_sent();
  group.all_to_all(device::view(full.get(), n), device::view(received.get(), n), "all-to-all of case")->wait();
  require(group.bytes_sent() - before == 4 * each * (group.size() - 1), "bytes of all_to_all");
  for (std::int64_t i = 0; i < n; ++i)
    require_bits(received[i], value(5, static_cast<int>(i / each), group.rank() * each + i % each), "all_to_all", i);
  require(received[n] == guard, "behind what is received", n);
}

/// Each pair of ranks exchanges another size, some of them 0.
inline void all_to_all_uneven(Group& group, std::int64_t each, Memory memory) {
  const int ranks = group.size(), rank = group.rank();
  const auto count = [&](int from, int to) { return (from + 2 * to) % 3 == 0 ? 0 : each + 7 * from + to; };
  std::vector<std::shared_ptr<float[]>> sent, received;
  std::vector<device::View> to, from;
  std::int64_t bytes = 0;
  for (int other = 0; other < ranks; ++other) {
    const std::int64_t goes = count(rank, other), comes = count(other, rank);
    sent.push_back(buffer<float>(group, memory, goes)), received.push_back(buffer<float>(group, memory, comes + 1));
    for (std::int64_t i = 0; i < goes; ++i) sent.back()[i] = value(other, rank, i);
    to.push_back(device::view(sent.back().get(), goes)), from.push_back(device::view(received.back().get(), comes));
    if (other != rank) bytes += 4 * goes;
  }
  const std::int64_t before = group.bytes_sent(), collectives = group.collectives();
  group.all_to_all(to, from, "uneven all-to-all of case")->wait();
  require(group.bytes_sent() - before == bytes, "bytes of an uneven all_to_all");
  require(group.collectives() - collectives == 1, "one collective");
  const float guard = *buffer<float>(group, Memory::ordinary, 1).get();
  for (int other = 0; other < ranks; ++other) {
    const auto& values = received[static_cast<std::size_t>(other)];
    const std::int64_t comes = count(other, rank);
    for (std::int64_t i = 0; i < comes; ++i) require_bits(values[i], value(rank, other, i), "uneven all_to_all", i);
    require_bits(values[comes], guard, "behind what is received", comes);
  }
}

/// Runs the same in groups of neighbours, while all ranks run another one; ranks wait for the two in different orders.
inline void all_to_all_of_groups(Group& group, std::int64_t each, Memory memory) {
  for (const int members : {2, 3}) {
    const auto part = group.split(group.rank() / members, "split into groups");
    all_to_all_uneven(*part, each, memory);
    const auto full = buffer<float>(group, memory, group.size()), received = buffer<float>(group, memory, group.size());
    const auto mine = buffer<float>(*part, memory, part->size()), theirs = buffer<float>(*part, memory, part->size());
    for (int i = 0; i < group.size(); ++i) full[i] = value(6, group.rank(), i);
    for (int i = 0; i < part->size(); ++i) mine[i] = value(7, group.rank(), i);
    const Work of_all = group.all_to_all(device::view(full.get(), group.size()),
                                         device::view(received.get(), group.size()), "all-to-all of all");
    const Work of_part = part->all_to_all(device::view(mine.get(), part->size()),
                                          device::view(theirs.get(), part->size()), "all-to-all of a group");
    if (group.rank() % 2 == 0) of_all->wait();
    of_part->wait(), of_all->wait();
    const int first = group.rank() / members * members;
    for (int i = 0; i < group.size(); ++i) require_bits(received[i], value(6, i, group.rank()), "beside a group", i);
    for (int i = 0; i < part->size(); ++i) require_bits(theirs[i], value(7, first + i, part->rank()), "in a group", i);
  }
}

inline void all_gather_object(Group& group, std::size_t most) {
  const auto blob = [&](int rank) {
    return std::string(most * static_cast<std::size_t>(rank) / static_cast<std::size_t>(group.size()),
                       static_cast<char>('a' + rank % 26));
  };
  const std::int64_t before = group.bytes_sent();
  const auto blobs = group.all_gather_object(blob(group.rank()), "exchange of case");
  require(static_cast<int>(blobs.size()) == group.size(), "count of blobs");
  for (int rank = 0; rank < group.size(); ++rank) {
    require(blobs[static_cast<std::size_t>(rank)] == blob(rank), "blob", rank);
  }
  require(group.bytes_sent() == before, "exchange is counted");
  const auto ranks = exchange_values(group, group.rank() * 2.5, "values of case");
  for (int rank = 0; rank < group.size(); ++rank) {
    require(ranks[static_cast<std::size_t>(rank)] == rank * 2.5, "value", rank);
  }
  // Each rank r has r values: rank 0 has none.
  const std::vector<double> mine(static_cast<std::size_t>(group.rank()), group.rank() * 0.5);
  const auto lists = group.all_gather(std::span<const double>(mine), "lists of case");
  require(static_cast<int>(lists.size()) == group.size(), "count of lists");
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::vector<double> expected(static_cast<std::size_t>(rank), rank * 0.5);
    require(lists[static_cast<std::size_t>(rank)] == expected, "list", rank);
  }
}

/// Many collectives in flight at once; each rank waits in a different order.
inline void overlap(Group& group, Memory memory) {
  constexpr int kCount = 40;
  constexpr std::int64_t kStep = 20011;
  std::vector<std::shared_ptr<float[]>> full, mine, gathered;
  std::vector<Work> works;
  const auto n_of = [](int k) { return kStep * (k % 7); };
  for (int k = 0; k < kCount; ++k) {
    full.push_back(buffer<float>(group, memory, n_of(k)));
    mine.push_back(buffer<float>(group, memory, n_of(k)));
    gathered.push_back(buffer<float>(group, memory, n_of(k)));
    for (std::int64_t i = 0; i < n_of(k); ++i) full.back()[i] = value(k, group.rank(), i);
    const Slice local = slice(n_of(k), group.rank(), group.size());
    for (std::int64_t i = 0; i < local.size(); ++i)
      gathered.back()[local.begin + i] = static_cast<float>(local.begin + i);
  }
  for (int k = 0; k < kCount; ++k) {
    const Slice local = slice(n_of(k), group.rank(), group.size());
    works.push_back(group.reduce_scatter(device::view(full[static_cast<std::size_t>(k)].get(), n_of(k)),
                                         device::view(mine[static_cast<std::size_t>(k)].get(), local.size()),
                                         "overlapping sum"));
    const device::View whole = device::view(gathered[static_cast<std::size_t>(k)].get(), n_of(k));
    works.push_back(group.all_gather(whole.part(local.begin, local.end), whole, "overlapping gather"));
    if (k % 10 == group.rank() % 10) works[static_cast<std::size_t>(k)]->test();
  }
  const int count = static_cast<int>(works.size());
  for (int i = 0; i < count; ++i) {
    const int k = group.rank() % 2 ? i : count - 1 - i;
    works[static_cast<std::size_t>((k + 11 * group.rank()) % count)]->wait();
  }
  for (int k = 0; k < kCount; ++k) {
    const Slice local = slice(n_of(k), group.rank(), group.size());
    for (std::int64_t i = 0; i < local.size(); ++i) {
      require_bits(mine[static_cast<std::size_t>(k)][i], serial(k, 0, group.size(), local.begin + i), "overlapping sum",
                   i);
    }
    for (std::int64_t i = 0; i < n_of(k); ++i) {
      require_bits(gathered[static_cast<std::size_t>(k)][i], static_cast<float>(i), "overlapping gather", i);
    }
  }
}

/// Leaves that do not divide evenly: each rank brings the few subtrees that its slice of them is, and the sum is the
/// canonical one of all; of leaves in the middle of a larger tree come the subtrees that they all are.
inline void reduce_subtrees(Group& group, std::int64_t n, Memory memory, std::int64_t leaves) {
  constexpr int kSeed = 99;
  const Slice local = slice(n, group.rank(), group.size());
  for (const std::int64_t first : {std::int64_t{0}, leaves + 3}) {
    const std::int64_t total = first == 0 ? leaves : 3 * leaves + 5;
    std::vector<std::vector<tree::Leaves>> nodes;
    for (std::int64_t rank = 0; rank < group.size(); ++rank) {
      const Slice held = slice(leaves, rank, group.size());
      nodes.push_back(tree::nodes({first + held.begin, first + held.end}, total));
    }
    Summands summands{n, device::Type::float32, tree::Addends::of(nodes, total)};
    std::vector<std::shared_ptr<float[]>> terms;
    for (const tree::Leaves& node : nodes[static_cast<std::size_t>(group.rank())]) {
      terms.push_back(buffer<float>(group, memory, n));
      for (std::int64_t i = 0; i < n; ++i)
        terms.back()[i] = serial(kSeed, static_cast<int>(node.begin), static_cast<int>(node.end), i);
      summands.terms.push_back(device::view(terms.back().get(), n));
    }
    const auto sums = static_cast<std::int64_t>(summands.addends.sums.size());
    const auto mine = buffer<float>(group, memory, sums * local.size());
    const std::int64_t before = group.bytes_sent();
    group.reduce_scatter(summands, device::view(mine.get(), sums * local.size()), "sum of subtrees")->wait();
    require(group.bytes_sent() - before == 4 * std::ssize(terms) * (n - local.size()), "bytes of subtrees");
    for (std::int64_t sum = 0; sum < sums; ++sum) {
      const tree::Leaves node = summands.addends.sums[static_cast<std::size_t>(sum)];
      for (std::int64_t i = 0; i < local.size(); ++i) {
        require_bits(mine[sum * local.size() + i],
                     serial(kSeed, static_cast<int>(node.begin), static_cast<int>(node.end), local.begin + i),
                     "sum of subtrees", i);
      }
    }
  }
}

/// All ranks' sums, in two steps: within pairs of neighbours, then between the pairs, by separate groups. Both groups'
/// collectives are in flight together, and each rank waits in a different order.
inline void split(Group& group, Memory memory) {
  constexpr std::int64_t kCount = 300007;
  constexpr int kSeed = 77;
  const auto pair = group.split(group.rank() / 2, "split into pairs");
  const auto across = group.split(group.rank() % 2, "split across pairs");
  require(pair->size() == std::min(2, group.size() - group.rank() / 2 * 2), "size of a pair");
  require(across->rank() == group.rank() / 2, "rank across pairs");
  if (std::has_single_bit(static_cast<unsigned>(group.size())) && group.size() > 1) {
    const auto full = buffer<float>(*pair, memory, kCount);
    for (std::int64_t i = 0; i < kCount; ++i) full[i] = value(kSeed, group.rank(), i);
    const Slice half = slice(kCount, pair->rank(), pair->size()),
                part = slice(half.size(), across->rank(), across->size());
    const auto of_pair = buffer<float>(*across, memory, half.size()),
               mine = buffer<float>(*across, memory, part.size());
    const device::View sum = device::view(of_pair.get(), half.size());
    pair->reduce_scatter(device::view(full.get(), kCount), sum, "sum of a pair")->wait();
    across->reduce_scatter(sum, device::view(mine.get(), part.size()), "sum of pairs")->wait();
    for (std::int64_t i = 0; i < part.size(); ++i)
      require_bits(mine[i], serial(kSeed, 0, group.size(), half.begin + part.begin + i), "sum in two steps", i);
  }
  std::vector<float> in_pair(static_cast<std::size_t>(pair->size())), in_all(static_cast<std::size_t>(group.size()));
  const auto rank = static_cast<float>(group.rank());
  in_pair[static_cast<std::size_t>(pair->rank())] = in_all[static_cast<std::size_t>(group.rank())] = rank;
  const auto gather = [](Group& within, std::vector<float>& ranks) {
    return within.all_gather(device::view(&ranks[static_cast<std::size_t>(within.rank())], 1),
                             device::view(ranks.data(), within.size()), "gather of ranks");
  };
  const Work first = gather(group, in_all), second = gather(*pair, in_pair);
  if (group.rank() % 3 == 0) first->wait();
  second->wait(), first->wait();
  for (int i = 0; i < group.size(); ++i) require(in_all[static_cast<std::size_t>(i)] == i, "gather beside a split", i);
  for (int i = 0; i < pair->size(); ++i)
    require(in_pair[static_cast<std::size_t>(i)] == group.rank() / 2 * 2 + i, "gather of a pair", i);
}

/// All cases above, for sizes below, at and above the pieces of the collectives.
inline void all(Group& group, const std::vector<Memory>& memories) {
  for (const Memory memory : memories) {
    int seed = 0;
    for (const std::int64_t n : {0, 1, 3, 64, 1000, 65536, 131072, 300007, 1200000}) {
      ++seed;
      for (const bool in_place : {false, true}) {
        reduce_scatter(group, n, seed, memory, in_place);
        all_gather<float>(group, n, memory, in_place);
        all_gather<std::uint16_t>(group, n, memory, in_place);
      }
      reduce_scatter_narrow<device::Bfloat16>(group, n, seed, memory);
      reduce_scatter_narrow<device::Float16>(group, n, seed, memory);
    }
    all_gather<std::uint8_t>(group, 100003, memory, true);
    all_gather<double>(group, 100003, memory, false);
    for (const int count : {1, 2, 7, 20}) all_gather_coalesced(group, count, memory);
    for (const std::int64_t each : {0, 1, 20011, 300007}) all_to_all(group, each, memory);
    for (const std::int64_t each : {0, 1, 20011}) all_to_all_uneven(group, each, memory);
    for (const std::int64_t each : {1, 3001}) all_to_all_of_groups(group, each, memory);
    for (const std::int64_t leaves : {1, 2, 5, 7, 12, 13, 24}) {
      reduce_subtrees(group, 1003, memory, leaves);
      reduce_subtrees(group, 20011, memory, leaves);
    }
    overlap(group, memory);
    split(group, memory);
  }
  for (const std::size_t most : {0, 100, 10000, 1000000}) all_gather_object(group, most);
}

}  // namespace zs::comm::cases
