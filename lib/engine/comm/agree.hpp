// SPDX-License-Identifier: Apache-2.0
// What ranks settle among themselves in words: that all have come, what one of them chose, that all have the same, that
// none has failed.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "comm/group.hpp"

namespace zs::comm {

/// An error that every rank throws in the same words: whoever reports errors says it once, for all.
class SharedError : public Error {
 public:
  using Error::Error;
};

/// Returns when every rank has called it. `what` names it in errors, here and below. COLLECTIVE.
void barrier(Group& group, const std::string& what);

/// The `text` of rank `root`, on every rank. COLLECTIVE.
std::string broadcast(Group& group, const std::string& text, int root, const std::string& what);

/// Runs `body` on every rank; it must not be collective. Where one throws, all throw SharedError: the words of the
/// first that did, led by its rank and host unless all ranks say the same. COLLECTIVE.
void together(Group& group, const std::string& what, const std::function<void()>& body);

/// Named values, in order.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Throws SharedError unless all ranks have the same facts: it names the first that differs, and both values with rank
/// and host. COLLECTIVE.
void require_same(Group& group, const Facts& facts, const std::string& what);

}  // namespace zs::comm
