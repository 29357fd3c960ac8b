// SPDX-License-Identifier: Apache-2.0
// What is offloaded: it comes back as it went, and what a disk gives back wrongly is found and named.
#include "zero/offloadable.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "device/tensor.hpp"

namespace zs::zero {
namespace {

constexpr std::int64_t kPage = 4096, kSize = 10'000, kWhole = kPage + 3 * kPage;  // of a block, and with its label

device::Buffer filled(std::int64_t bytes, int seed) {
  device::Buffer memory = device::allocate({}, bytes);
  for (std::int64_t i = 0; i < bytes; ++i) memory.data()[i] = static_cast<std::byte>((i * 131 + seed * 17) % 251);
  return memory;
}
bool same(const device::Buffer& a, const device::Buffer& b) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0;
}
device::View bytes(const device::Buffer& memory) { return memory.view(device::Type::byte, memory.bytes()); }

/// The nameless file of a store in `folder`, opened again.
int file_of(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with(folder + "/")) return ::open(entry.path().c_str(), O_RDWR);
  }
  return -1;
}

std::string refusal(Store& store, int block, std::int64_t size) {
  const device::Buffer to = device::allocate({}, size);
  try {
    store.finish_load(block, bytes(to));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("store: what is stored comes back, in any order, many under way, from the host's memory and from a disk") {
  const TemporaryFolder folder;
  for (const bool disk : {false, true}) {
    CAPTURE(disk);
    const auto store = disk ? file_store({}, folder.path() + "/made/for/it") : host_store({});
    const std::vector<std::int64_t> sizes = {1, 4096, 100'000, 4095, 12'000'000, 0, 8192};
    std::vector<int> blocks;
    std::int64_t sum = 0;
    for (const std::int64_t size : sizes) blocks.push_back(store->add("block", size)), sum += size;
    CHECK(store->bytes() == sum);
    for (int round = 1; round <= 3; ++round) {
      for (std::size_t i = 0; i < sizes.size(); ++i)
        store->start_store(blocks[i], bytes(filled(sizes[i], static_cast<int>(i) + round)));
      for (std::size_t i = 0; i < sizes.size(); ++i) store->start_load(blocks[i]);
      for (std::size_t i = sizes.size(); i-- > 0;) {
        const device::Buffer to = device::allocate({}, sizes[i]);
        store->finish_load(blocks[i], bytes(to));
        CHECK(same(to, filled(sizes[i], static_cast<int>(i) + round)));
      }
    }
  }
  // Nothing with a name is left of the file, not even while it is used.
  const auto store = file_store({}, folder.path() + "/made/for/it");
  store->start_store(store->add("block", 5), bytes(filled(5, 1)));
  CHECK(std::filesystem::is_empty(folder.path() + "/made/for/it"));
}

TEST_CASE("store: a stale block, a swapped block and a torn write are each told from the others, by name") {
  const TemporaryFolder folder;
  const auto store = file_store({}, folder.path());
  const int a = store->add("optimizer state of h.0", kSize), b = store->add("optimizer state of h.1", kSize);
  const int file = file_of(folder.path());
  REQUIRE(file >= 0);
  const auto store_both = [&](int seed) {
    for (const int block : {a, b}) store->start_store(block, bytes(filled(kSize, seed + block)));
    for (const int block : {a, b}) CHECK(refusal(*store, block, kSize) == "");  // and it is on the disk now
  };
  std::vector<char> first(kWhole), second(kWhole);
  const auto read = [&](std::vector<char>& into, int block) {
    REQUIRE(::pread(file, into.data(), into.size(), block * kWhole) == kWhole);
  };
  const auto write = [&](const std::vector<char>& from, int block, std::int64_t count = kWhole) {
    REQUIRE(::pwrite(file, from.data(), static_cast<std::size_t>(count), block * kWhole) == count);
    ::fsync(file);
  };
  const std::string lead =
      folder.path() + ": the optimizer state of h.1 that is offloaded there: it is not what was stored: ";

  store_both(1);
  read(first, b);
  store_both(2);
  write(first, b);  // the disk has lost the second write
  CHECK(refusal(*store, b, kSize) == lead + "it is stale: write 1 of 2");
  CHECK(refusal(*store, a, kSize) == "");

  store_both(3);
  read(first, a);
  write(first, b);  // and here it has put a block where another one belongs
  CHECK(refusal(*store, b, kSize) == lead + "it is swapped with the optimizer state of h.0");

  store_both(4);
  read(first, b);
  store_both(5);
  read(second, b);
  std::copy(first.begin() + 2 * kPage, first.end(), second.begin() + 2 * kPage);
  write(second, b);  // only the first pages of the last write have come to the disk
  CHECK(refusal(*store, b, kSize) == lead + "it is torn: its bytes have another checksum than when they were stored");
  store_both(6);
  write(std::vector<char>(kWhole), b);
  CHECK(refusal(*store, b, kSize) == lead + "it has no label of zs");
  store_both(7);
  REQUIRE(::ftruncate(file, b * kWhole) == 0);
  CHECK(refusal(*store, b, kSize) ==
        folder.path() + ": the optimizer state of h.1 that is offloaded there: cannot be read: the file ends early");
  ::close(file);
}

TEST_CASE("store: a folder that cannot be, and a disk without room, are named") {
  const TemporaryFolder folder;
  std::ofstream(folder.file("file")) << "x";
  CHECK_THROWS_AS(file_store({}, folder.file("file")), Error);
  const auto store = file_store({}, folder.path());
  try {
    store->add("optimizer state of h.0", std::int64_t{1} << 50);
    FAIL("room for 2^50 bytes");
  } catch (const Error& error) {
    CHECK(std::string(error.what())
              .starts_with(folder.path() + ": the optimizer state of h.0 that is offloaded there: no room: "));
  }
}

TEST_CASE("store: one loaded block at a time takes the memory of the largest, and what is looked at is not changed") {
  const auto store = host_store({});
  OffloadableBuffer small({store.get(), false}, "a", {}, 100), large({store.get(), false}, "b", {}, 1000),
      resident({}, "c", {}, 10);
  CHECK_FALSE(small.memory());
  CHECK(store->bytes() == 1100);
  CHECK(resident.resident_bytes() == 10);
  for (int i = 0; i < 3; ++i) {
    large.load();
    CHECK(std::all_of(large.memory().data(), large.memory().data() + 1000,
                      [&](std::byte b) { return b == std::byte(i); }));
    std::memset(large.memory().data(), i + 1, 1000);
    large.put_back();
    {
      const ScopedLoad loaded(small);
      small.memory().data()[0] = std::byte(9);  // forgotten
    }
    small.load();
    CHECK(small.memory().data()[0] == std::byte(0));
    small.drop();
  }
  CHECK(store->staging_bytes() == 1000);
}

TEST_CASE("store: what is in device memory between steps leaves it for a while, and is there again as it was left") {
  const TemporaryFolder folder;
  for (const bool disk : {false, true}) {
    CAPTURE(disk);
    const auto store = disk ? file_store({}, folder.path()) : host_store({});
    OffloadableBuffer kept({store.get(), true}, "a", {}, 5000);
    CHECK(kept.bytes_here() == 5000);
    for (int i = 1; i <= 3; ++i) {
      std::memset(kept.memory().data(), i, 5000);
      kept.put_back();
      CHECK(kept.bytes_here() == 5000);
      kept.move_out();
      CHECK(kept.bytes_here() == 0);
      {
        const ScopedLoad loaded(kept);
        CHECK(kept.memory().data()[4999] == std::byte(i));
      }
      CHECK(kept.bytes_here() == 0);
      kept.start_load();
      kept.load();
      CHECK(kept.memory().data()[0] == std::byte(i));
    }
    CHECK(kept.resident_bytes() == 5000);
    CHECK(store->staging_bytes() == 0);
  }
}

}  // namespace
}  // namespace zs::zero
