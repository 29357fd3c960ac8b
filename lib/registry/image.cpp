// SPDX-License-Identifier: Apache-2.0
#include "registry/image.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>
#include <type_traits>

namespace zs::registry {
namespace {

constexpr std::uint64_t kMagic = 0x31307864692d737aULL;  // "zs-idx01" where bytes are little-endian

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

/// Takes values from the front of bytes whose checksum is right.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T one() {
    T value{};
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const auto size = one<std::uint32_t>();
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  template <typename T>
  std::vector<T> all(std::size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), rest_.data(), count * sizeof(T));
    rest_.remove_prefix(count * sizeof(T));
    return values;
  }

 private:
  std::string_view rest_;
};

/// The whole file, or "" where it cannot be read.
std::string content(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  struct stat status {};
  std::string bytes;
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) bytes.resize(static_cast<std::size_t>(status.st_size));
  std::size_t used = 0;
  while (used < bytes.size()) {
    const ssize_t count = ::read(file, bytes.data() + used, bytes.size() - used);
    if (count <= 0) break;
    used += static_cast<std::size_t>(count);
  }
  ::close(file);
  bytes.resize(used);
  return bytes;
}

}  // namespace

Image read_image(const std::string& path) {
  const std::string bytes = content(path);
  if (bytes.size() < 2 * sizeof(std::uint64_t)) return {};
  const std::string_view body(bytes.data(), bytes.size() - sizeof(std::uint64_t));
  std::uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + body.size(), sizeof sum);
  Taker take(body);
  if (take.one<std::uint64_t>() != kMagic || hash(body) != sum) return {};
  Image image;
  image.csv.size = take.one<std::int64_t>();
  image.csv.time = take.one<std::int64_t>();
  image.csv.inode = take.one<std::uint64_t>();
  image.csv_hash = take.one<std::uint64_t>();
  const auto rows = take.one<std::uint64_t>();
  image.runs.times = take.all<std::int64_t>(rows);
  image.runs.columns.resize(take.one<std::uint32_t>());
  for (Column& column : image.runs.columns) {
    column.name = take.text();
    column.values.resize(take.one<std::uint32_t>());
    for (std::string& value : column.values) value = take.text();
    column.codes = take.all<std::uint32_t>(rows);
  }
  return image;
}

std::string image_bytes(const Runs& runs, const Stamp& csv, std::uint64_t csv_hash) {
  std::string out;
  put(out, kMagic);
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
