// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.hpp"

#include <zlib.h>

#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"

namespace zs {
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
