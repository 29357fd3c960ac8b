// SPDX-License-Identifier: Apache-2.0
// Agreement among ranks by text: barriers, broadcasts, checks
// that all have the same values and that none has failed.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "comm/group.hpp"

namespace zs::comm {

/// An error that every rank throws with the same text: it is reported once, for all.
class SharedError : public Error {
 public:
  using Error::Error;
};

/// Returns when every rank has called it. `what` is the name in errors, here and below. COLLECTIVE.
void barrier(Group& group, const std::string& what);

/// The `text` of rank `root`, on every rank. COLLECTIVE.
std::string broadcast(Group& group, const std::string& text, int root, const std::string& what);

/// Runs `body` on every rank; it must not be collective. If one throws, all throw SharedError with the text of the
/// first that did, which begins with its rank and host unless all texts are equal. COLLECTIVE.
void together(Group& group, const std::string& what, const std::function<void()>& body);

/// Named values, in order.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Throws SharedError unless all ranks have the same facts: it names the first difference, and both values with rank
/// and host. COLLECTIVE.
void require_same(Group& group, const Facts& facts, const std::string& what);

}  // namespace zs::comm
