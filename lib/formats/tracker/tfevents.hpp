// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files: events in frames with checksums (TFRecord), each a message of Protocol Buffers.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace zs::tracker {

struct EventValue {
  std::string tag;
  double scalar = 0;   ///< if is_text is false
  std::string text{};  ///< if it is true
  bool is_text = false;
};

struct Event {
  double wall_time = 0;  ///< s since 1970
  std::int64_t step = 0;
  std::string version{};  ///< of the file, in its first event: "brain.Event:2"
  bool restarts = false;  ///< a session begins: earlier events from `step` on are void
  std::vector<EventValue> values{};
  int other = 0;  ///< values of kinds that zs does not read: images, histograms
};

/// The frame of an event. Scalars are stored as float, with 24 bits of precision.
std::string to_frame(const Event& event);

/// Passes each event of `bytes` to `use`, with the number of its frame from 1; faults carry `name`. Reading stops at a
/// frame with a wrong length.
void read_events(std::string_view bytes, const std::string& name,
                 const std::function<void(const Event&, std::int64_t)>& use, const FaultSink& faults);

}  // namespace zs::tracker
