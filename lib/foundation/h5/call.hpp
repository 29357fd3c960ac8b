// SPDX-License-Identifier: Apache-2.0
// Calls of the HDF5 library, with its failures as zs::Error. For the sources of this folder alone: it includes hdf5.h.
#pragma once
#include <hdf5.h>

#include <string>

#include "h5/handle.hpp"

namespace zs::h5 {

/// Turns HDF5's own error printing and its loading of plug-ins off. To be called before the first other call.
void prepare();

/// `id` as a Handle; throws Error "cannot DOING: HDF5's innermost reason" where it is negative.
Handle owned(hid_t id, const std::string& doing);

/// Throws as owned() where `result` is negative; gives it back otherwise.
long long checked(long long result, const std::string& doing);

}  // namespace zs::h5
