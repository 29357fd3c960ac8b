// SPDX-License-Identifier: Apache-2.0
// A profiler trace of one rank, as PyTorch's profiler (Kineto) writes it: *.pt.trace.json, plain or compressed. Read as
// a stream: the text is never whole in memory.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"

namespace zs::trace {

enum class Category : std::uint8_t { other, cpu_op, annotation, gpu_annotation, kernel, memcpy, memset, runtime, sync };

/// One event with a duration. Times are in microseconds.
struct Event {
  double ts = 0, dur = 0;  ///< from the first event of the trace
  std::int64_t correlation = -1;
  double bandwidth = 0;    ///< GB/s, of a copy
  std::uint32_t name = 0;  ///< number in Trace::names
  std::int32_t stream = -1, thread = 0;
  std::int32_t partner = -1;  ///< the event that launched this one, or that it launched; -1: none
  std::int32_t caller = -1;  ///< of operators and launches: the operator of that thread within which it began; -1: none
  Category category = Category::other;
  bool gpu = false;  ///< it ran on a stream, or is a synchronisation
  double end() const { return ts + dur; }
};

struct Memory {
  double ts;
  std::int64_t device, allocated, reserved;  ///< bytes
};

struct Trace {
  std::string path;
  std::int64_t rank = 0, world_size = 0;
  bool rank_known = false;
  std::vector<std::string> names;
  std::vector<Event> events;
  std::vector<Memory> memory;
  std::int64_t read = 0;                 ///< objects in traceEvents
  std::map<std::int64_t, double> steps;  ///< number of each ProfilerStep and its start
  const std::string& name(const Event& event) const { return names[event.name]; }
};

/// Reads a trace. What is cut or malformed is a fault, and what is whole before it is kept; an event whose time or
/// duration is no time (negative, not finite) is left out, and counted in a fault. Throws Error where the file cannot
/// be read at all, or holds no event.
Trace read(const std::string& path, const FaultSink& faults);

/// What the analyses look at: times rounded to whole microseconds inwards where they have fractions, events linked with
/// what launched them and what called them, and, of several profiler steps, those before the last, since that one is
/// mostly cut.
void prepare(Trace& trace, bool with_last_step);

/// What a GPU's event is for, by its name.
enum class Kind : std::uint8_t { computation, communication, memory, other };
Kind kind_of(std::string_view name);
std::string_view name(Kind kind);

}  // namespace zs::trace
