// SPDX-License-Identifier: Apache-2.0
// Python's pickle, as far as torch.save uses it. Reading creates only plain values and tensors: no name in a file makes
// code run.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorfile/value.hpp"

namespace zs::tensorfile {

/// How floats are written: as 0-dimensional f64 tensors, since PyTorch 1.13 refuses the opcode for floats; or as Python
/// writes them, for readers that need a float.
enum class Reals { tensors, plain };

/// A pickle of protocol 2 that torch.load(weights_only=True) of PyTorch 1.13 and later accepts, unless it has objects.
/// Tensors refer to `storages` by index (appended to, each storage once); all floats written as tensors share one
/// storage. An Object with arguments becomes a call of its class; one with only a state, an instance with that state;
/// one with neither, the class or value of that name. Throws Error for content that Python could not load: text that is
/// not UTF-8, element types that PyTorch 1.13 lacks, one storage under two element types, unsound views.
std::string pickle(const Value& root, std::vector<StoragePtr>& storages, Reals reals = Reals::tensors);

using StorageSource = std::function<StoragePtr(const std::string& key)>;

/// The Python names that a pickle may contain.
enum class Names {
  tensors,  ///< names for tensors and plain values; any other is an error
  any       ///< all names, others as Objects, except those that only a hostile file calls (os.system, builtins.eval)
};

/// Reads protocols 2 to 5. Skips attributes set on a dict (`_metadata` of a state_dict); a Parameter becomes its
/// tensor; a dtype becomes its name ("torch.float32"). Throws Error with `place` and the byte for anything else:
/// "PLACE: byte 12: global os.system is not allowed".
Value unpickle(std::string_view bytes, const std::string& place, const StorageSource& source,
               Names names = Names::tensors);

}  // namespace zs::tensorfile
