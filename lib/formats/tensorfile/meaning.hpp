// SPDX-License-Identifier: Apache-2.0
// What the few names that a pickle of torch.save may contain mean here. All other names are refused, and none of these
// runs anything.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tensorfile/graph.hpp"

namespace zs::tensorfile {

/// Whether `name` ("collections.OrderedDict") is one of tensors and plain values.
bool is_allowed(const std::string& name);

/// Whether `name` is one that no checkpoint has a use for and that would run something: of os, subprocess, builtins'
/// functions, ... Such a file is hostile.
bool is_hostile(std::string_view name);

/// The same for a name that is not of tensors: a Made. Of what packages write by calls, the plain value: text of
/// _codecs.encode.
Id call_inert(Graph& graph, const std::string& name, const std::vector<Id>& arguments);

/// What Python would get by calling `name` with `arguments`: a dict, a tuple or a tensor.
/// Throws Malformed for a name that cannot be called and for arguments it does not take.
Id call(Graph& graph, const std::string& name, const std::vector<Id>& arguments);

/// The storage behind a persistent id, a tuple ("storage", class, key, device, elements), with its bytes from
/// `source`. Throws Malformed for any other tuple and where their number is not what the tuple says.
Id keep(Graph& graph, Id persistent, const std::function<StoragePtr(const std::string& key)>& source);

}  // namespace zs::tensorfile
