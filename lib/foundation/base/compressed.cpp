// SPDX-License-Identifier: Apache-2.0
#include "base/compressed.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <new>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"

namespace zs {

bool may_be_zstandard(std::string_view begin) {
  const std::string_view start = begin.substr(0, kZstandardMagic), frame = "\x28\xB5\x2F\xFD", skipped = "\x2A\x4D\x18";
  return frame.starts_with(start) || ((start[0] & 0xF0) == 0x50 && skipped.starts_with(start.substr(1)));
}

Unzstd::Unzstd(Read read, std::string_view begin, std::string name)
    : read_(std::move(read)),
      name_(std::move(name)),
      input_(std::max<std::size_t>(1 << 18, begin.size())),
      end_(begin.size()),
      stream_(ZSTD_createDStream()) {
  if (!stream_) throw std::bad_alloc();
  std::copy(begin.begin(), begin.end(), input_.begin());
}

Unzstd::~Unzstd() { ZSTD_freeDStream(static_cast<ZSTD_DStream*>(stream_)); }

std::size_t Unzstd::read(char* buffer, std::size_t size) {
  ZSTD_outBuffer output{buffer, size, 0};
  while (output.pos == 0 && size > 0) {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = read_(input_.data(), input_.size());
      if (end_ == 0 && !within_) return 0;
    }
    // Also without input: what is decompressed already may wait inside.
    ZSTD_inBuffer input{input_.data(), end_, begin_};
    const std::size_t result = ZSTD_decompressStream(static_cast<ZSTD_DStream*>(stream_), &output, &input);
    if (ZSTD_isError(result)) throw Error(name_, 0, std::string("damaged zstd data: ") + ZSTD_getErrorName(result));
    if (end_ == 0 && output.pos == 0) throw Error(name_, 0, "truncated zstd data");
    begin_ = input.pos;
    within_ = result != 0;
  }
  return output.pos;
}

namespace {

constexpr std::size_t kBlock = 1 << 20;

class Deflater {
 public:
  Deflater() {
    constexpr int kGzip = 16;  // zlib's sign for gzip's header and trailer
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw Error("zlib: no memory to compress with");
  }
  ~Deflater() { deflateEnd(&stream); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  z_stream stream{};
};

}  // namespace

void gzip(const std::string& from, const std::string& to) {
  Input input(from);
  Output output(to);
  Deflater deflater;
  std::vector<char> plain(kBlock), packed(kBlock);
  for (std::size_t count = 1; count > 0;) {
    count = input.read(plain.data(), plain.size());
    deflater.stream.next_in = reinterpret_cast<Bytef*>(plain.data());
    deflater.stream.avail_in = static_cast<uInt>(count);
    do {
      deflater.stream.next_out = reinterpret_cast<Bytef*>(packed.data());
      deflater.stream.avail_out = static_cast<uInt>(packed.size());
      ::deflate(&deflater.stream, count > 0 ? Z_NO_FLUSH : Z_FINISH);
      output.write({packed.data(), packed.size() - deflater.stream.avail_out});
    } while (deflater.stream.avail_out == 0);
  }
  output.commit();
}

}  // namespace zs
