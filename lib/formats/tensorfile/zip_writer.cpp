// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tensorfile/zip.hpp"

namespace zs::tensorfile {
namespace {

constexpr std::uint64_t kAlign = 64;  // PyTorch's alignment
constexpr std::uint16_t kUtf8Names = 1 << 11;
constexpr std::uint16_t kDate = (1 << 5) | 1;  // 1 January 1980: the same tensors always give the same bytes
constexpr std::uint32_t kCrcField = 14;        // in a local header

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::uint32_t low(std::uint64_t value, std::uint64_t large) {
  return value >= large ? 0xFFFFFFFF : static_cast<std::uint32_t>(value);
}

}  // namespace

ZipWriter::ZipWriter(Output& output, std::uint64_t begin, std::string place, std::uint64_t large)
    : output_(output), begin_(begin), place_(std::move(place)), large_(std::min<std::uint64_t>(large, 0xFFFFFFFF)) {}

void ZipWriter::write(std::string_view bytes) {
  output_.write(bytes);
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name, const Storage& data) {
  const bool zip64 = data.size() >= large_;
  Entry entry{name, data.size(), at_, 0};
  std::string extra;
  if (zip64) {
    put<std::uint16_t>(extra, 1);
    put<std::uint16_t>(extra, 16);
    put<std::uint64_t>(extra, entry.size);
    put<std::uint64_t>(extra, entry.size);
  }
  // PyTorch's filler: field 'FB' with enough 'Z' to align the data to the next multiple of 64.
  const std::uint64_t unaligned = at_ + 30 + name.size() + extra.size() + 4;
  const std::uint64_t fill = (kAlign - unaligned % kAlign) % kAlign;
  extra += "FB";
  put<std::uint16_t>(extra, static_cast<std::uint16_t>(fill));
  extra.append(fill, 'Z');

  std::string header;
  put<std::uint32_t>(header, 0x04034B50);
  put<std::uint16_t>(header, zip64 ? 45 : 20);
  put<std::uint16_t>(header, kUtf8Names);
  put<std::uint16_t>(header, 0);  // stored
  put<std::uint16_t>(header, 0);  // time
  put<std::uint16_t>(header, kDate);
  put<std::uint32_t>(header, 0);  // checksum: below
  put<std::uint32_t>(header, zip64 ? 0xFFFFFFFF : static_cast<std::uint32_t>(entry.size));
  put<std::uint32_t>(header, zip64 ? 0xFFFFFFFF : static_cast<std::uint32_t>(entry.size));
  put<std::uint16_t>(header, static_cast<std::uint16_t>(name.size()));
  put<std::uint16_t>(header, static_cast<std::uint16_t>(extra.size()));
  write(header + name + extra);
  data.stream(
      [&](std::string_view bytes) {
        constexpr std::size_t kPiece = 1 << 20;  // small enough that the write finds the checksummed bytes in the cache
        for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
          const std::string_view piece = bytes.substr(at, kPiece);
          entry.crc = crc32_of(piece, entry.crc);
          write(piece);
        }
      },
      place_ + ": " + name);
  std::string crc;
  put(crc, entry.crc);
  output_.rewrite(begin_ + entry.header + kCrcField, crc);
  entries_.push_back(std::move(entry));
}

/// Its record in the directory at the end.
std::string ZipWriter::record_of(const Entry& entry) const {
  std::string extra;  // zip64: only the fields that overflow, in this order
  if (entry.size >= large_) {
    put<std::uint64_t>(extra, entry.size);
    put<std::uint64_t>(extra, entry.size);
  }
  if (entry.header >= large_) put<std::uint64_t>(extra, entry.header);
  const auto length = static_cast<std::uint16_t>(extra.size());
  std::string record;
  put<std::uint32_t>(record, 0x02014B50);
  put<std::uint16_t>(record, length ? 45 : 20);  // made by: plain files, version
  put<std::uint16_t>(record, length ? 45 : 20);
  put<std::uint16_t>(record, kUtf8Names);
  put<std::uint16_t>(record, 0);
  put<std::uint16_t>(record, 0);
  put<std::uint16_t>(record, kDate);
  put<std::uint32_t>(record, entry.crc);
  put<std::uint32_t>(record, low(entry.size, large_));
  put<std::uint32_t>(record, low(entry.size, large_));
  put<std::uint16_t>(record, static_cast<std::uint16_t>(entry.name.size()));
  put<std::uint16_t>(record, length ? static_cast<std::uint16_t>(length + 4) : 0);
  put<std::uint16_t>(record, 0);  // comment
  put<std::uint16_t>(record, 0);  // disk
  put<std::uint16_t>(record, 0);  // internal attributes
  put<std::uint32_t>(record, 0);  // external attributes
  put<std::uint32_t>(record, low(entry.header, large_));
  record += entry.name;
  if (length) {
    put<std::uint16_t>(record, 1);
    put<std::uint16_t>(record, length);
    record += extra;
  }
  return record;
}

std::uint64_t ZipWriter::finish() {
  const std::uint64_t begin = at_;
  for (const Entry& entry : entries_) {
    write(record_of(entry));
  }
  const std::uint64_t end = at_;
  const std::uint64_t count = entries_.size();
  const bool many = count >= 0xFFFF;
  const std::uint64_t size = end - begin;
  std::string tail;
  if (many || size >= large_ || begin >= large_) {
    put<std::uint32_t>(tail, 0x06064B50);
    put<std::uint64_t>(tail, 44);  // bytes that follow in this record
    put<std::uint16_t>(tail, 45);
    put<std::uint16_t>(tail, 45);
    put<std::uint32_t>(tail, 0);
    put<std::uint32_t>(tail, 0);
    put<std::uint64_t>(tail, count);
    put<std::uint64_t>(tail, count);
    put<std::uint64_t>(tail, size);
    put<std::uint64_t>(tail, begin);
    put<std::uint32_t>(tail, 0x07064B50);  // the offset of the record above
    put<std::uint32_t>(tail, 0);
    put<std::uint64_t>(tail, end);
    put<std::uint32_t>(tail, 1);
  }
  const auto shown = many ? std::uint16_t{0xFFFF} : static_cast<std::uint16_t>(count);
  put<std::uint32_t>(tail, 0x06054B50);
  put<std::uint16_t>(tail, 0);
  put<std::uint16_t>(tail, 0);
  put<std::uint16_t>(tail, shown);
  put<std::uint16_t>(tail, shown);
  put<std::uint32_t>(tail, low(size, large_));
  put<std::uint32_t>(tail, low(begin, large_));
  put<std::uint16_t>(tail, 0);
  write(tail);
  return at_;
}

}  // namespace zs::tensorfile
