// SPDX-License-Identifier: Apache-2.0
// Results of a GPU that have the host's bits: fingerprints, and numbers of matrices of 4 bits.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "device/nf4.hpp"
#include "device/operations.hpp"
#include "device/tensor.hpp"

/// Is told of each comparison whether it passed, and its name.
using Result = std::function<void(bool, const std::string&)>;

/// A GPU's fingerprints are the host's, of views that are no whole pieces, and a changed bit is another.
inline void compare_fingerprints(const Result& result) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor here = at::randn({5000003}).to(type), on_gpu = here.to(at::kCUDA);
    const auto prints = [](const at::Tensor& x) {
      const zs::device::View whole = zs::device::view(x);
      const std::vector<zs::device::View> views = {whole, whole.part(1, 3), whole.part(7, 7),
                                                   whole.part(1048575, 3145729)};
      return zs::device::operations(whole.device).fingerprints(views);
    };
    const auto before = prints(on_gpu);
    result(before == prints(here), std::string("fingerprints are those of the host, ") + at::toString(type));
    on_gpu[2000000].neg_();
    const auto after = prints(on_gpu);
    result(after[0] != before[0] && after[1] == before[1] && after[2] == 0 && after[3] != before[3],
           std::string("fingerprints of what has changed are others, ") + at::toString(type));
  }
}

/// A GPU widens matrices of 4 bits to the host's bits: of whole blocks, of a last one in part, of few numbers.
inline void compare_nf4(const Result& result) {
  for (const bool nested : {false, true}) {
    for (const std::int64_t numel : {std::int64_t{5}, std::int64_t{1} << 20, std::int64_t{3000017}}) {
      const zs::device::Nf4 form{numel, nested};
      const at::Tensor numbers = at::randn({numel}), bytes = at::empty({form.bytes()}, at::kByte);
      zs::device::to_nf4(zs::device::floats(numbers), form,
                         {static_cast<std::byte*>(bytes.data_ptr()), static_cast<std::size_t>(form.bytes())});
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        const auto widened = [&](const at::Tensor& from) {
          const at::Tensor made = at::full({numel}, NAN, from.options().dtype(type));
          zs::device::from_nf4(zs::device::view(from), form, zs::device::view(made));
          return made.cpu();
        };
        const at::Tensor expected = widened(bytes);
        result(at::equal(widened(bytes.to(at::kCUDA)), expected),
               std::string("4 bits widened to the host's bits, ") + at::toString(type) + ", " + std::to_string(numel) +
                   (nested ? ", nested scales" : ""));
      }
    }
  }
}
