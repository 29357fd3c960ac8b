// SPDX-License-Identifier: Apache-2.0
#include "registry/image.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/error.hpp"
#include "base/file.hpp"

namespace zs::registry {
namespace {

constexpr std::uint64_t kImageMagic = 0x31307864692d737aULL;  // "zs-idx01" if bytes are little-endian

template <typename T>
void put(std::string& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& out, const std::string& text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

template <typename T>
void put_all(std::string& out, const std::vector<T>& values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// Thrown within this file: the bytes are not an image.
struct Damaged {};

/// Takes values from the front of bytes. Anybody can make a right checksum, so every length is looked at. Throws
/// Damaged.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T one() {
    T value{};
    std::memcpy(&value, take(1, sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(one<std::uint32_t>(), 1)); }
  template <typename T>
  std::vector<T> all(std::uint64_t count) {
    const std::string_view bytes = take(count, sizeof(T));
    std::vector<T> values(count);
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  /// The number of items, of at least `size` bytes each, that follow.
  std::uint32_t count(std::size_t size) {
    const auto count = one<std::uint32_t>();
    if (count > rest_.size() / size) throw Damaged();
    return count;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  std::string_view take(std::uint64_t count, std::size_t size) {
    if (count > rest_.size() / size) throw Damaged();
    const std::string_view taken = rest_.substr(0, count * size);
    rest_.remove_prefix(taken.size());
    return taken;
  }
};

Column take_column(Taker& take, std::uint64_t rows) {
  Column column;
  column.name = take.text();
  column.values.resize(take.count(sizeof(std::uint32_t)));
  for (std::string& value : column.values) value = take.text();
  column.codes = take.all<std::uint32_t>(rows);
  const auto known = [&](std::uint32_t code) { return code < column.values.size(); };
  if (column.values.empty() || !column.values[0].empty() ||
      !std::all_of(column.codes.begin(), column.codes.end(), known))
    throw Damaged();
  return column;
}

Image take_image(std::string_view bytes) {
  if (bytes.size() < 2 * sizeof(std::uint64_t)) throw Damaged();
  const std::string_view body = bytes.substr(0, bytes.size() - sizeof(std::uint64_t));
  Taker take(body), end(bytes.substr(body.size()));
  if (take.one<std::uint64_t>() != kImageMagic || hash(body) != end.one<std::uint64_t>()) throw Damaged();
  Image image;
  image.found = true;
  image.csv.size = take.one<std::int64_t>();
  image.csv.time = take.one<std::int64_t>();
  image.csv.inode = take.one<std::uint64_t>();
  image.csv_hash = take.one<std::uint64_t>();
  const auto rows = take.one<std::uint64_t>();
  image.runs.times = take.all<std::int64_t>(rows);
  image.runs.columns.resize(take.count(2 * sizeof(std::uint32_t)));
  for (Column& column : image.runs.columns) column = take_column(take, rows);
  if (!take.at_end() || (rows > 0 && !image.runs.find("run_id"))) throw Damaged();
  return image;
}

constexpr std::size_t kLargest = std::size_t{1} << 30;

}  // namespace

Image read_image(const std::string& path, std::span<const uid_t> trusted) {
  try {
    const Regular file = read_regular(path, kLargest);
    if (std::find(trusted.begin(), trusted.end(), file.owner) == trusted.end()) return {};
    return take_image(file.bytes);
  } catch (const Damaged&) {
    return {};
  } catch (const Error&) {
    return {};
  }
}

std::string image_bytes(const Runs& runs, const Stamp& csv, std::uint64_t csv_hash) {
  std::string out;
  put(out, kImageMagic);
  put(out, csv.size);
  put(out, csv.time);
  put(out, csv.inode);
  put(out, csv_hash);
  put(out, static_cast<std::uint64_t>(runs.size()));
  put_all(out, runs.times);
  put(out, static_cast<std::uint32_t>(runs.columns.size()));
  for (const Column& column : runs.columns) {
    put_text(out, column.name);
    put(out, static_cast<std::uint32_t>(column.values.size()));
    for (const std::string& value : column.values) put_text(out, value);
    put_all(out, column.codes);
  }
  put(out, hash(out));
  return out;
}

std::uint64_t hash(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace zs::registry
