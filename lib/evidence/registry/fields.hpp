// SPDX-License-Identifier: Apache-2.0
// Many fields of a record (record.hpp) set at once.
#pragma once
#include "registry/record.hpp"

namespace zs::registry {

/// Sets each of `more` as set() does; the time grows with the fields of both, not with their product.
void set(Fields& fields, const Fields& more);

}  // namespace zs::registry
