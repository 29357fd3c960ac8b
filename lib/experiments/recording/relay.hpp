// SPDX-License-Identifier: Apache-2.0
// What a command prints, byte for byte: into a log, and to where it would have gone without us.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "recording/command.hpp"

namespace zs::recording {

class Relay {
 public:
  using Tell = std::function<void(const std::string&)>;

  /// Appends to the file `log`. Throws Error where it cannot be opened. Later failures (a full disk, a closed pipe) do
  /// not end the command: they are told once, and the bytes are counted.
  Relay(const std::string& log, Tell warn);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Passes on these from now on. They outlive the relay.
  void add(const std::vector<Command::Stream>& streams);

  /// What poll(2) is to wait for: bytes to read, or room for those that were read.
  struct Wait {
    int file = -1;
    short events = 0;
  };
  std::vector<Wait> waits() const;
  /// Reads and writes what can be read and written now.
  void work();
  /// The command has ended: what it wrote is passed on to its end. True where others still have its output open.
  bool drain();
  /// All streams are at their end.
  bool ended() const;
  std::int64_t bytes() const { return bytes_; }
  std::int64_t not_logged() const { return not_logged_; }

 private:
  struct Stream {
    int from, to;
    bool open = true, lost = false, plain = false;
    std::string pending;  ///< read, logged, not passed on
  };
  bool read(Stream& stream);
  void pass_on(Stream& stream);
  void log(std::string_view bytes);

  std::string path_;
  Tell warn_;
  int log_ = -1;
  bool told_ = false;
  std::vector<Stream> streams_;
  std::vector<char> buffer_;
  std::int64_t bytes_ = 0, not_logged_ = 0;
};

}  // namespace zs::recording
