// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.hpp"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <xxhash.h>

#include <array>
#include <new>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit) made[i] = made[i] >> 1 ^ (made[i] & 1 ? 0x82F63B78U : 0);
    }
    return made;
  }();
  std::uint32_t sum = ~0U;
  for (const char c : bytes) sum = sum >> 8 ^ table[(sum ^ static_cast<unsigned char>(c)) & 255];
  return ~sum;
}

struct Checksum::State {
  std::int64_t size = 0;
  EVP_MD_CTX* sha = nullptr;  // null if there are too many bytes for it
  XXH3_state_t* xxh = XXH3_createState();
  std::string name = "sha256";

  void drop_sha() {
    EVP_MD_CTX_free(sha);
    sha = nullptr;
    name = "xxh128";
  }
};

Checksum::Checksum(std::int64_t expected) : state_(std::make_unique<State>()) {
  if (!state_->xxh) throw std::bad_alloc();
  XXH3_128bits_reset(state_->xxh);
  if (expected > kLargest) {
    state_->drop_sha();
    return;
  }
  state_->sha = EVP_MD_CTX_new();
  if (!state_->sha || EVP_DigestInit_ex(state_->sha, EVP_sha256(), nullptr) != 1) throw Error("openssl has no SHA-256");
}

Checksum::~Checksum() {
  EVP_MD_CTX_free(state_->sha);
  XXH3_freeState(state_->xxh);
}

void Checksum::add(std::string_view bytes) {
  state_->size += static_cast<std::int64_t>(bytes.size());
  if (state_->sha && state_->size > kLargest) state_->drop_sha();
  if (state_->sha) EVP_DigestUpdate(state_->sha, bytes.data(), bytes.size());
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

std::string Checksum::name() const { return state_->name; }

std::string Checksum::text() {
  if (!state_->sha) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_->xxh));
    return to_hex({reinterpret_cast<const char*>(canonical.digest), sizeof canonical.digest});
  }
  std::array<unsigned char, 32> bytes;
  EVP_DigestFinal_ex(state_->sha, bytes.data(), nullptr);
  return to_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace zs
