// SPDX-License-Identifier: Apache-2.0
// A profiler trace of one rank in the format of PyTorch's profiler (Kineto): *.pt.trace.json, plain or compressed. Read
// as a stream: the text is never in memory as a whole.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace zs::trace {

enum class Category : std::uint8_t { other, cpu_op, annotation, gpu_annotation, kernel, memcpy, memset, runtime, sync };

/// An event with a duration. Times are in microseconds.
struct Event {
  double ts = 0, dur = 0;  ///< since the first event of the trace
  std::int64_t correlation = -1;
  double bandwidth = 0;      ///< GB/s, of a copy
  std::uint32_t name = 0;    ///< index in Trace::names
  std::int32_t stream = -1;  ///< of a device's event; -1: none
  std::int32_t thread = 0;
  std::int32_t partner = -1;  ///< the event that launched this one, or that it launched; -1: none
  std::int32_t caller = -1;   ///< for operators and launches: the operator of its thread in which it began; -1: none
  Category category = Category::other;
  bool gpu = false;  ///< on_device(category)
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
  std::map<std::int64_t, double> steps;  ///< number of each ProfilerStep -> its start
  const std::string& name(const Event& event) const { return names[event.name]; }
};

/// Reads a trace. Truncated or malformed parts are faults, and everything complete before them is kept; an event with
/// an invalid time or duration (negative, not finite) is left out and counted in a fault. Throws Error if the file
/// cannot be read at all, or has no event.
/// `whole_microseconds`: rounds times with fractions inwards, as Holistic Trace Analysis does: a begin up, an end down;
/// an event within one microsecond lasts 0.
Trace read(const std::string& path, const FaultSink& faults, bool whole_microseconds = false);

/// Whether events of this category ran on a device, or wait for one.
bool on_device(Category category);

/// Prepares for the analyses: links events with their launches and callers, and, if there
/// are several profiler steps, removes the last, which is usually incomplete.
void prepare(Trace& trace, bool with_last_step);

/// The purpose of a GPU's event, by its name.
enum class Kind : std::uint8_t { computation, communication, memory, other };
Kind kind_of(std::string_view name);
std::string_view name(Kind kind);

struct Reading {
  bool with_last_step = false;      ///< as prepare()
  bool whole_microseconds = false;  ///< as read()
};

/// The traces in files, prepared, by rank. Faults are those of read(), and also two traces of one rank, kernels that
/// begin before their launch, and operators that end after their caller (the clock went back). Throws Error as read().
std::vector<Trace> read_all(const std::vector<std::string>& files, const Reading& how, const FaultSink& faults);

}  // namespace zs::trace
