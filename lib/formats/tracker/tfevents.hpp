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

/// What TensorBoard shows of one event under one tag.
struct EventValue {
  std::string tag;
  double scalar = 0;   ///< where is_text is false
  std::string text{};  ///< where it is true
  bool is_text = false;
};

struct Event {
  double wall_time = 0;  ///< s since 1970
  std::int64_t step = 0;
  std::string version{};  ///< of the file, in its first event: "brain.Event:2"
  bool restarts = false;  ///< a session begins: events from `step` on that came before are void
  std::vector<EventValue> values{};
  int other = 0;  ///< values of kinds that zs does not read: pictures, histograms
};

/// The frame of an event. A scalar is a float there: 24 bits of it are kept.
std::string to_frame(const Event& event);

/// Hands on each event of `bytes`, with the number of its frame from 1, and each defect with `name`. After a frame
/// whose length is wrong nothing more can be found.
void read_events(std::string_view bytes, const std::string& name,
                 const std::function<void(const Event&, std::int64_t)>& use, const FaultSink& faults);

}  // namespace zs::tracker
