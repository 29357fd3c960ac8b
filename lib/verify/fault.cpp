// SPDX-License-Identifier: Apache-2.0
#include "verify/fault.hpp"

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"

namespace zs::verify {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

[[noreturn]] void refuse(const std::string& why) { throw UsageError("--inject_fault: " + why); }

std::int64_t number(const std::string& text, const std::string& what, std::int64_t lowest, std::int64_t highest) {
  const auto value = parse_int(text);
  if (!value || *value < lowest || *value > highest) {
    refuse(what + " '" + text + "' is not in " + std::to_string(lowest) + ".." + std::to_string(highest));
  }
  return *value;
}

[[noreturn]] void refuse_name(const std::string& name, const unit::Units& units) {
  std::vector<std::string> names;
  for (const auto& unit : units) {
    for (const auto& parameter : unit->parameters()) names.push_back(parameter.name);
  }
  std::string near;
  for (const std::string& candidate : nearest(name, names, 3))
    near += (near.empty() ? ", did you mean " : " or ") + candidate;
  if (near.empty()) {
    near = " (there are " + std::to_string(names.size()) + ": " + names.front() + " ... " + names.back() + ")";
  } else {
    near += '?';
  }
  refuse("no parameter '" + name + "'" + near);
}

}  // namespace

InjectedFault read_fault(const std::string& text, const unit::Units& units, std::int64_t steps, int ranks, int stage) {
  const auto parts = split(text);
  if (parts.size() < 3 || parts.size() > 4) refuse("'" + text + "' is not STEP:PARAMETER:INDEX[:RANK]");
  InjectedFault fault;
  fault.step = number(parts[0], "step", 1, steps);
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const auto& parameter : units[unit]->parameters()) {
      if (parameter.name != parts[1]) continue;
      fault.unit = static_cast<int>(unit);
      fault.element = parameter.offset + number(parts[2], "index in " + parameter.name, 0, parameter.numel() - 1);
    }
  }
  if (fault.unit < 0) refuse_name(parts[1], units);
  if (parts.size() < 4) return fault;
  fault.rank = static_cast<int>(number(parts[3], "rank", 0, ranks - 1));
  if (stage == 0) return fault;
  for (int rank = 0; rank < ranks; ++rank) {
    const comm::Slice slice = comm::slice(units[static_cast<std::size_t>(fault.unit)]->numel(), rank, ranks);
    const bool owns = slice.begin <= fault.element && fault.element < slice.end;
    if (owns && rank != fault.rank) {
      refuse("rank " + parts[3] + " does not hold that element under stage " + std::to_string(stage) + ", rank " +
             std::to_string(rank) + " does");
    }
  }
  return fault;
}

void InjectedFault::apply(zero::Engine& engine, int its_rank) const {
  if (rank >= 0 && rank != its_rank) return;
  engine.states()[static_cast<std::size_t>(unit)].gradient.flip_bit(element);
}

}  // namespace zs::verify
