// SPDX-License-Identifier: Apache-2.0
// Copies a command's output byte for byte to a log and to its original destination.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "recording/command.hpp"

namespace zs::recording {

class Relay {
 public:
  using Tell = std::function<void(const std::string&)>;

  /// Appends to the file `log`. Throws Error if it cannot be opened. Later failures (a full disk, a closed pipe) do not
  /// end the command: they are reported once, and the lost bytes are counted.
  Relay(const std::string& log, Tell warn);

  /// Relays these streams from now on. They must outlive the relay.
  void add(const std::vector<Command::Stream>& streams);

  /// The events for poll(2): bytes to read, or room to write the bytes read before.
  struct Wait {
    int file = -1;
    short events = 0;
  };
  std::vector<Wait> waits() const;
  /// Reads and writes as much as possible without blocking.
  void work();
  /// Call it when the command has ended: relays its remaining output. True if others still have its output open.
  bool drain();
  /// Whether all streams have ended.
  bool ended() const;
  std::int64_t bytes() const { return bytes_; }
  std::int64_t not_logged() const { return not_logged_; }

 private:
  struct Stream {
    int from, to;
    bool open = true, lost = false, plain = false;
    std::string pending;  ///< read and logged, but not yet passed on
  };
  bool read(Stream& stream);
  void pass_on(Stream& stream);
  void log(std::string_view bytes);

  std::string path_;
  Tell warn_;
  Descriptor log_;
  bool told_ = false;
  std::vector<Stream> streams_;
  std::vector<char> buffer_;
  std::int64_t bytes_ = 0, not_logged_ = 0;
};

}  // namespace zs::recording
