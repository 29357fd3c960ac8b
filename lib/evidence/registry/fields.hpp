// SPDX-License-Identifier: Apache-2.0
// Sets many fields of a record (record.hpp) at once.
#pragma once
#include "registry/record.hpp"

namespace zs::registry {

/// Sets each of `more` as set() does, in time linear in the number of fields of both.
void set(Fields& fields, const Fields& more);

}  // namespace zs::registry
