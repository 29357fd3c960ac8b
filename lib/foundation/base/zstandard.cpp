// SPDX-License-Identifier: Apache-2.0
#include "base/zstandard.hpp"

#include <zstd.h>

#include <algorithm>
#include <new>

#include "base/error.hpp"

namespace zs {

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

}  // namespace zs
