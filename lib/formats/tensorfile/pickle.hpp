// SPDX-License-Identifier: Apache-2.0
// Python's pickle, as far as torch.save uses it. Reading builds plain values and tensors and nothing else: no name
// in a file ever makes code run.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorfile/value.hpp"

namespace zs::tensorfile {

/// How a float is written: PyTorch 1.13 refuses the opcode for floats, so that it becomes a 0-dimensional f64 tensor;
/// or as Python itself does, for readers that must find a float.
enum class Reals { tensors, plain };

/// A pickle of protocol 2 that torch.load(weights_only=True) of PyTorch 1.13 and later accepts, unless it has objects.
/// Tensors refer to `storages` by index (appended to, each storage once); all floats that are tensors share one
/// storage. An Object with arguments is what its class makes of them, one with a state alone an instance that has it,
/// one without either the class or value of that name. Throws Error for what Python could not load: text that is not
/// UTF-8, element types PyTorch 1.13 lacks, one storage under two element types, unsound views.
std::string pickle(const Value& root, std::vector<StoragePtr>& storages, Reals reals = Reals::tensors);

/// Gives the storage that a pickle names by a key.
using StorageSource = std::function<StoragePtr(const std::string& key)>;

/// Which names of Python's may stand in a pickle.
enum class Names {
  tensors,  ///< those of tensors and plain values; any other is an error
  any       ///< all others too, each as an Object, but such as only a hostile file calls (os.system, builtins.eval)
};

/// Reads protocols 2 to 5. Attributes set on a dict (`_metadata` of a state_dict) are left out; a Parameter is its
/// tensor; a dtype is its name ("torch.float32"). Throws Error with `place` and the byte for anything else:
/// "PLACE: byte 12: global os.system is not allowed".
Value unpickle(std::string_view bytes, const std::string& place, const StorageSource& source,
               Names names = Names::tensors);

}  // namespace zs::tensorfile
