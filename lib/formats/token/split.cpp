// SPDX-License-Identifier: Apache-2.0
#include "token/split.hpp"

#include <algorithm>

namespace zs::token {

const std::string_view kGpt2Expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Splitter::Splitter(const Steps& steps) : steps_(&steps) {
  for (const Step& step : steps) {
    matcher_.push_back(matchers_.size());
    if (!step.expression.empty()) matchers_.emplace_back(step.expression.front());
  }
}

bool Splitter::can_split_in_parts() const {
  if (steps_->empty() || steps_->front().expression.empty()) return false;
  const Behaviour behaviour = steps_->front().behaviour;
  return behaviour == Behaviour::isolated || behaviour == Behaviour::removed;
}

std::size_t Splitter::split_part(std::string_view text, std::size_t begin, std::size_t limit, const Sink& sink) {
  const Step& step = steps_->front();
  limit = std::min(limit, text.size());
  const auto hand = [&](std::size_t from, std::size_t to, bool match) {
    if (from < to && (step.behaviour == Behaviour::isolated || match == step.invert))
      split(text.substr(from, to - from), 1, sink);
  };
  while (begin < limit) {
    const Expression::Match match = matchers_.front().next(text, begin);
    hand(begin, match.begin, false);
    begin = match.begin;
    if (begin >= limit) break;
    hand(begin, match.end, true);
    begin = match.end;
  }
  return begin;
}

std::vector<Splitter::Part> Splitter::parts(std::string_view text, std::size_t step) {
  std::vector<Part> found;
  const bool invert = (*steps_)[step].invert;
  for (std::size_t at = 0; at < text.size();) {
    const Expression::Match match = matchers_[matcher_[step]].next(text, at);
    if (match.begin > at) found.push_back({at, match.begin, invert});
    if (match.end > match.begin) found.push_back({match.begin, match.end, !invert});
    at = match.end;
  }
  return found;
}

void Splitter::split(std::string_view text, std::size_t at, const Sink& sink) {
  if (text.empty()) return;
  if (at == steps_->size()) return sink(text);
  const Step& step = (*steps_)[at];
  if (step.expression.empty()) {
    if (text.front() == ' ') return split(text, at + 1, sink);
    return split(" " + std::string(text), at + 1, sink);
  }
  std::vector<Part> found = parts(text, at);
  const bool backwards = step.behaviour == Behaviour::merged_with_next;
  if (backwards) std::ranges::reverse(found);
  std::vector<Part> joined;
  bool previous = false;
  for (const Part& part : found) {
    const bool join = step.behaviour == Behaviour::contiguous
                          ? part.match == previous
                          : (step.behaviour == Behaviour::merged_with_previous || backwards) && part.match && !previous;
    previous = part.match;
    if (join && !joined.empty()) {
      (backwards ? joined.back().begin : joined.back().end) = backwards ? part.begin : part.end;
    } else if (step.behaviour != Behaviour::removed || !part.match) {
      joined.push_back(part);
    }
  }
  if (backwards) std::ranges::reverse(joined);
  for (const Part& part : joined) split(text.substr(part.begin, part.end - part.begin), at + 1, sink);
}

}  // namespace zs::token
