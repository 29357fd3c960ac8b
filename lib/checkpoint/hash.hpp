// SPDX-License-Identifier: Apache-2.0
// A hash of the parameters as one rank sees them, unit by unit, for the ranks to compare.
#pragma once
#include <xxhash.h>

#include <memory>
#include <string>

#include "base/number.hpp"
#include "unit/tensor.hpp"

namespace zs::checkpoint {

class Hash {
 public:
  Hash() { XXH3_128bits_reset(state_.get()); }
  void add(const at::Tensor& whole) { XXH3_128bits_update(state_.get(), whole.data_ptr<float>(), whole.nbytes()); }
  std::string text() const {
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(state_.get()));
    return to_hex({reinterpret_cast<const char*>(bytes.digest), sizeof bytes.digest});
  }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_{XXH3_createState(), XXH3_freeState};
};

}  // namespace zs::checkpoint
