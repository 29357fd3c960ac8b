// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.hpp"
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

namespace {

constexpr std::uint32_t kLocal = 0x04034B50, kCentral = 0x02014B50, kEnd = 0x06054B50;
constexpr std::uint32_t kEnd64 = 0x06064B50, kLocator64 = 0x07064B50;

// Reads numbers from untrusted bytes: every access is checked, a failure names the file and the part.
class Bytes {
 public:
  Bytes(const Mapping& file, std::string_view archive) : file_(file), archive_(archive) {}

  [[noreturn]] void fail(const std::string& what) const { throw Error(file_.path(), 0, what); }

  std::string_view range(std::uint64_t at, std::uint64_t size, const char* part) const {
    if (at > archive_.size() || size > archive_.size() - at) {
      fail("damaged zip archive: " + std::string(part) + " is outside of the file");
    }
    return archive_.substr(at, size);
  }

  template <class T>
  T number(std::uint64_t at, const char* part) const {
    T value;
    std::memcpy(&value, range(at, sizeof value, part).data(), sizeof value);
    return value;
  }
  std::uint16_t u16(std::uint64_t at, const char* part) const { return number<std::uint16_t>(at, part); }
  std::uint32_t u32(std::uint64_t at, const char* part) const { return number<std::uint32_t>(at, part); }
  std::uint64_t u64(std::uint64_t at, const char* part) const { return number<std::uint64_t>(at, part); }

 private:
  const Mapping& file_;
  std::string_view archive_;
};

// The end record is last, before a comment of up to 64 KB.
std::optional<std::uint64_t> find_end(std::string_view archive) {
  constexpr std::uint64_t kSize = 22;
  for (std::uint64_t back = kSize; back <= std::min<std::uint64_t>(archive.size(), kSize + 0xFFFF); ++back) {
    const std::uint64_t at = archive.size() - back;
    std::uint32_t signature = 0;
    std::uint16_t comment = 0;
    std::memcpy(&signature, archive.data() + at, sizeof signature);
    std::memcpy(&comment, archive.data() + at + 20, sizeof comment);
    if (signature == kEnd && comment == back - kSize) return at;
  }
  return std::nullopt;
}

struct Directory {
  std::uint64_t count, size, begin;
};

Directory find_directory(const Bytes& bytes, std::string_view archive) {
  const std::optional<std::uint64_t> end = find_end(archive);
  if (!end) bytes.fail("damaged zip archive: no end record, the file may be cut short");
  constexpr const char* kPart = "the end record";
  Directory found{bytes.u16(*end + 10, kPart), bytes.u32(*end + 12, kPart), bytes.u32(*end + 16, kPart)};
  std::uint64_t limit = *end;
  if (*end >= 20 && bytes.u32(*end - 20, kPart) == kLocator64) {
    const std::uint64_t at = bytes.u64(*end - 12, kPart);
    if (bytes.u32(at, "the zip64 end record") != kEnd64) bytes.fail("damaged zip archive: no zip64 end record");
    found = {bytes.u64(at + 32, kPart), bytes.u64(at + 40, kPart), bytes.u64(at + 48, kPart)};
    limit = at;
  }
  if (found.begin > limit || found.size > limit - found.begin || found.count > found.size / 46) {
    bytes.fail("damaged zip archive: the directory does not fit the file");
  }
  return found;
}

}  // namespace

ZipReader::ZipReader(std::shared_ptr<const Mapping> file) : ZipReader(file, file->bytes()) {}

ZipReader::ZipReader(std::shared_ptr<const Mapping> file, std::string_view archive)
    : file_(std::move(file)), archive_(archive) {
  const Bytes bytes(*file_, archive_);
  const Directory directory = find_directory(bytes, archive_);
  std::uint64_t at = directory.begin;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    constexpr const char* kPart = "a directory record";
    if (bytes.u32(at, kPart) != kCentral) bytes.fail("damaged zip archive: malformed directory record");
    const std::uint16_t flags = bytes.u16(at + 8, kPart);
    const std::uint16_t method = bytes.u16(at + 10, kPart);
    Entry entry;
    entry.crc = bytes.u32(at + 16, kPart);
    std::uint64_t packed = bytes.u32(at + 20, kPart);
    entry.size = bytes.u32(at + 24, kPart);
    const std::uint16_t name_size = bytes.u16(at + 28, kPart);
    const std::uint16_t extra_size = bytes.u16(at + 30, kPart);
    const std::uint16_t comment_size = bytes.u16(at + 32, kPart);
    std::uint64_t header = bytes.u32(at + 42, kPart);
    const std::string name(bytes.range(at + 46, name_size, kPart));
    const std::uint64_t extra = at + 46 + name_size;
    at = extra + extra_size + comment_size;
    if (at > directory.begin + directory.size) bytes.fail("damaged zip archive: malformed directory record");
    const auto malformed = [&](const std::string& what) {
      bytes.fail(located(name, 0, "damaged zip archive: " + what));
    };

    for (std::uint64_t field = extra; field + 4 <= extra + extra_size;) {
      const std::uint64_t field_end = field + 4 + bytes.u16(field + 2, kPart);
      if (field_end > extra + extra_size) malformed("malformed extra field");
      if (bytes.u16(field, kPart) == 1) {  // zip64: the overflowed ones of the three, in this order
        std::uint64_t from = field + 4;
        for (std::uint64_t* value : {&entry.size, &packed, &header}) {
          if (*value != 0xFFFFFFFF) continue;
          if (from + 8 > field_end) malformed("malformed zip64 field");
          *value = bytes.u64(from, kPart);
          from += 8;
        }
      }
      field = field_end;
    }

    // The local header repeats the name and has the offset of the data.
    constexpr const char* kHeader = "an entry's header";
    if (bytes.u32(header, kHeader) != kLocal) malformed("no header at offset " + std::to_string(header));
    const std::uint16_t local_name = bytes.u16(header + 26, kHeader);
    if (bytes.range(header + 30, local_name, kHeader) != name) malformed("its header has another name");
    entry.begin = header + 30 + local_name + bytes.u16(header + 28, kHeader);
    entry.stored = method == 0 && (flags & 1) == 0;
    if (entry.stored && packed != entry.size) malformed("two sizes for stored data");
    if (entry.begin > directory.begin || packed > directory.begin - entry.begin) {
      malformed("its data is outside of the file");
    }
    if (!entries_.emplace(name, entry).second) malformed("a second entry of this name");
  }
}

std::vector<std::string> ZipReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

StoragePtr ZipReader::open(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw Error(file_->path(), 0, name + ": no such entry in the archive");
  if (!found->second.stored) {
    throw Error(file_->path(), 0, name + ": is compressed or encrypted, torch.save writes neither");
  }
  return Storage::map(file_, archive_.substr(found->second.begin, found->second.size), name, found->second.crc);
}

}  // namespace zs::tensorfile
