// SPDX-License-Identifier: Apache-2.0
#include "h5/call.hpp"

#include "base/error.hpp"

namespace zs::h5 {
namespace {

herr_t keep_first(unsigned, const H5E_error2_t* error, void* reason) {
  auto& text = *static_cast<std::string*>(reason);
  if (text.empty() && error->desc) text = error->desc;
  return 0;
}

[[noreturn]] void fail(const std::string& doing) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
  H5Eclear2(H5E_DEFAULT);
  throw Error("cannot " + doing + (reason.empty() ? "" : ": " + reason));
}

}  // namespace

void prepare() {
  [[maybe_unused]] static const bool once = [] {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    H5PLset_loading_state(0);  // a damaged file must not make us load code
    return true;
  }();
}

Handle owned(hid_t id, const std::string& doing) {
  if (id < 0) fail(doing);
  return Handle(id);
}

long long checked(long long result, const std::string& doing) {
  if (result < 0) fail(doing);
  return result;
}

Handle::~Handle() {
  if (id_ >= 0) H5Idec_ref(id_);
}

}  // namespace zs::h5
