// SPDX-License-Identifier: Apache-2.0
// What was asked for needs data that the inputs do not have (status 3): a log without losses has no loss curve.
#pragma once
#include "base/error.hpp"

namespace zs {

class NoData : public Error {
 public:
  using Error::Error;
};

}  // namespace zs
