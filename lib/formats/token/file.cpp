// SPDX-License-Identifier: Apache-2.0
#include "token/file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"

namespace zs::token {
namespace {

using Header = std::array<std::int32_t, 256>;

struct Kind {
  std::int32_t magic, version;
  int width;            // bytes of an id; 0: no file of ids
  const char* content;  // for those
};

constexpr Kind kKinds[] = {{20240520, 1, 2, ""},
                           {20240801, 7, 4, ""},
                           {20240522, 1, 0, "an evaluation set of llm.c"},
                           {20240328, 2, 0, "a tokenizer of llm.c"},
                           {20240326, 0, 0, "a model of llm.c"},
                           {20240527, 1, 0, "a training state of llm.c"}};

const Kind* kind_of(std::string_view bytes) {
  std::int32_t magic = 0;
  if (bytes.size() < sizeof magic) return nullptr;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  const auto* const at =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return kind.magic == magic; });
  return at == std::end(kKinds) ? nullptr : at;
}

/// Bytes of an id of Megatron's file, by its index beside it; 0 if there is none.
int in_megatron(const std::string& path) {
  const std::filesystem::path index = std::filesystem::path(path).replace_extension(".idx");
  std::string begin(18, '\0');
  std::ifstream file(index, std::ios::binary);
  if (!file.read(begin.data(), std::ssize(begin)) || !begin.starts_with("MMIDIDX")) return 0;
  constexpr int kWidths[] = {0, 1, 1, 2, 4, 8, 8, 4, 2};  // uint8, int8, int16, int32, int64, float64, float32, uint16
  const auto code = static_cast<std::size_t>(static_cast<unsigned char>(begin[17]));
  return code < std::size(kWidths) ? kWidths[code] : 0;
}

std::string size_text(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

bool has_header(std::string_view bytes) { return kind_of(bytes) != nullptr; }

TokenFile::TokenFile(const std::string& path, std::optional<Id> vocabulary) : mapping_(Mapping::open(path)) {
  const std::string_view bytes = mapping_->bytes();
  const auto wrong = [&](const std::string& what) { throw Error(path, 0, what); };
  if (bytes.empty()) wrong("is empty, expected a token file");
  if (const Kind* const kind = kind_of(bytes)) {
    if (kind->width == 0) wrong(std::string("is ") + kind->content + ", expected a token file");
    Header header{};
    if (bytes.size() < sizeof header)
      wrong("is cut short: it has " + size_text(bytes.size()) + " of its header's 1024");
    std::memcpy(header.data(), bytes.data(), sizeof header);
    if (header[1] != kind->version) {
      wrong("has version " + std::to_string(header[1]) + " of magic " + std::to_string(kind->magic) +
            ", of which zs knows " + std::to_string(kind->version));
    }
    layout_ = Layout::llmc;
    width_ = kind->width;
    count_ = header[2];
    if (count_ < 0) wrong("says that it holds " + std::to_string(count_) + " ids");
    const std::uint64_t size = sizeof header + static_cast<std::uint64_t>(count_) * static_cast<std::uint64_t>(width_);
    if (bytes.size() != size) {
      wrong((bytes.size() < size ? "is cut short: its header says " : "is longer than its header says: ") +
            std::to_string(count_) + " ids, which are " + size_text(size) + " with the header; it has " +
            size_text(bytes.size()));
    }
    ids_ = bytes.data() + sizeof header;
  } else {
    if (bytes.size() % 2 != 0)
      wrong("is not a token file: it has no magic of llm.c, and an odd number of bytes is not a row of uint16");
    count_ = static_cast<std::int64_t>(bytes.size() / 2);
    ids_ = bytes.data();
    if (in_megatron(path) > 2)
      wrong(
          "is Megatron's, with ids of more than 16 bits as the .idx file beside it says: zs reads those of 16 bits; "
          "make a token file of the text by zs-tokenize");
  }
  if (count_ == 0) wrong("holds no id");
  if (!vocabulary || largest() < *vocabulary) return;
  std::int64_t at = 0;
  while (id(at) < *vocabulary) ++at;
  wrong("holds the id " + std::to_string(id(at)) + " at " + std::to_string(at) + ", but the vocabulary has " +
        std::to_string(*vocabulary) + ": it is of another tokenizer, or no token file");
}

Id TokenFile::largest() const {
  Id most = 0;
  for (std::int64_t i = 0; i < count_; ++i) most = std::max(most, id(i));
  return most;
}

TokenWriter::TokenWriter(const std::string& path, Layout layout, Id vocabulary)
    : path_(path), layout_(layout), width_(vocabulary <= (1 << 16) ? 2 : 4), output_(path) {
  if (layout == Layout::nanogpt && width_ == 4) {
    throw Error(path, 0,
                "nanoGPT's files hold ids below 65536, and the tokenizer has " + std::to_string(vocabulary) +
                    ": choose --format llmc");
  }
  if (layout == Layout::nanogpt) return;
  Header header{};
  header[0] = kKinds[width_ == 2 ? 0 : 1].magic;
  header[1] = kKinds[width_ == 2 ? 0 : 1].version;
  output_.write({reinterpret_cast<const char*>(header.data()), sizeof header});
  output_.rewrite(0, "");  // if that fails, it is reported before the work
}

void TokenWriter::write(const std::vector<Id>& ids) {
  count_ += static_cast<std::int64_t>(ids.size());
  if (width_ == 4) return output_.write({reinterpret_cast<const char*>(ids.data()), 4 * ids.size()});
  const std::vector<std::uint16_t> narrow(ids.begin(), ids.end());
  output_.write({reinterpret_cast<const char*>(narrow.data()), 2 * narrow.size()});
}

void TokenWriter::check() const {
  if (count_ == 0) throw Error(path_, 0, "would hold no id: the input has no text");
  if (layout_ == Layout::llmc && count_ > INT32_MAX) {
    throw Error(path_, 0,
                "llm.c's files hold 2147483647 ids at most, and these are " + std::to_string(count_) +
                    ": name fewer inputs, or choose --format nanogpt");
  }
}

void TokenWriter::commit() {
  check();
  if (layout_ == Layout::llmc) {
    const auto count = static_cast<std::int32_t>(count_);
    output_.rewrite(8, {reinterpret_cast<const char*>(&count), sizeof count});
  }
  output_.commit();
}

}  // namespace zs::token
