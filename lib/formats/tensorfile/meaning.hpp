// SPDX-License-Identifier: Apache-2.0
// The meaning of the few names that a pickle of torch.save may contain. All other names are refused, and none of these
// runs code.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tensorfile/graph.hpp"

namespace zs::tensorfile {

/// Whether `name` ("collections.OrderedDict") is allowed: a name for tensors or plain values.
bool is_allowed(const std::string& name);

/// Whether `name` would run code that no checkpoint needs: functions of os, subprocess, builtins, ... Such a file is
/// hostile.
bool is_hostile(std::string_view name);

/// Like call(), for a name that is not for tensors: returns a Made, or the plain value if packages write it as a call
/// (text of _codecs.encode).
Id call_inert(Graph& graph, const std::string& name, const std::vector<Id>& arguments);

/// The result of Python's call of `name` with `arguments`: a dict, a tuple or a tensor. Throws Malformed for a name
/// that cannot be called and for arguments it does not take.
Id call(Graph& graph, const std::string& name, const std::vector<Id>& arguments);

/// The storage of a persistent id, a tuple ("storage", class, key, device, elements), with its bytes from `source`.
/// Throws Malformed for any other tuple and if the number of bytes does not match.
Id keep(Graph& graph, Id persistent, const std::function<StoragePtr(const std::string& key)>& source);

}  // namespace zs::tensorfile
