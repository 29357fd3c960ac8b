// SPDX-License-Identifier: Apache-2.0
// Calls of the HDF5 library; failures become zs::Error. Only for sources of this folder, since it includes hdf5.h.
#pragma once
#include <hdf5.h>

#include <string>

#include "h5/handle.hpp"

namespace zs::h5 {

/// Disables HDF5's error printing and plug-ins. REQUIRES: called before any other call.
void prepare();

/// `id` as a Handle; throws Error "cannot DOING: HDF5's innermost reason" if it is negative.
Handle owned(hid_t id, const std::string& doing);

/// Throws as owned() if `result` is negative; else returns it.
long long checked(long long result, const std::string& doing);

}  // namespace zs::h5
