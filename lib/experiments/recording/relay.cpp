// SPDX-License-Identifier: Apache-2.0
#include "recording/relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/error.hpp"

namespace zs::recording {
namespace {

constexpr std::size_t kBlock = 1 << 18;  // bytes read at once

bool is_plain(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Relay::Relay(const std::string& log, Tell warn) : path_(log), warn_(std::move(warn)), buffer_(kBlock) {
  log_ = Descriptor(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (log_ < 0) throw Error(log, 0, errno_text());
}

void Relay::add(const std::vector<Command::Stream>& streams) {
  for (const Command::Stream& stream : streams) {
    Stream relayed{stream.from, stream.to, true, false, false, ""};
    relayed.lost = ::fcntl(stream.to, F_GETFD) < 0;  // closed when we were called
    relayed.plain = is_plain(stream.to);
    streams_.push_back(relayed);
  }
}

std::vector<Relay::Wait> Relay::waits() const {
  std::vector<Wait> waits;
  for (const Stream& stream : streams_) {
    // A slow reader makes the command wait, as it would without zs-record.
    if (!stream.pending.empty())
      waits.push_back({stream.to, POLLOUT});
    else if (stream.open)
      waits.push_back({stream.from, POLLIN});
  }
  return waits;
}

void Relay::work() {
  for (Stream& stream : streams_) {
    if (!stream.pending.empty()) pass_on(stream);
    if (stream.pending.empty() && stream.open) read(stream);
  }
}

/// True if there was something.
bool Relay::read(Stream& stream) {
  const ssize_t count = ::read(stream.from, buffer_.data(), buffer_.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count <= 0) {  // EIO: the last one has closed the terminal
    stream.open = false;
    return false;
  }
  const std::string_view bytes(buffer_.data(), static_cast<std::size_t>(count));
  bytes_ += count;
  log(bytes);
  if (stream.lost) return true;
  stream.pending.assign(bytes);
  pass_on(stream);
  return true;
}

void Relay::pass_on(Stream& stream) {
  std::size_t done = 0;
  while (done < stream.pending.size()) {
    pollfd room{stream.to, POLLOUT, 0};
    if (!stream.plain && (::poll(&room, 1, 0) <= 0 || (room.revents & (POLLOUT | POLLERR | POLLHUP)) == 0)) break;
    // A pipe that has room takes this many bytes without a wait.
    const std::size_t size = std::min(stream.pending.size() - done, stream.plain ? kBlock : std::size_t{PIPE_BUF});
    const ssize_t count = ::write(stream.to, stream.pending.data() + done, size);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      // A closed pipe (zs-record ... | head) is not a fault: the reader has read enough.
      if (errno != EPIPE)
        warn_(std::string(stream.to == STDOUT_FILENO ? "stdout: " : "stderr: ") + errno_text() +
              ": the output of the command is in " + path_ + " alone");
      stream.lost = true;
      stream.pending.clear();
      return;
    }
  }
  stream.pending.erase(0, done);
}

void Relay::log(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(log_, bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (!told_) warn_(path_ + ": write: " + errno_text() + ": the command continues, its log has a gap");
    told_ = true;
    not_logged_ += static_cast<std::int64_t>(bytes.size());
    return;
  }
}

bool Relay::drain() {
  for (Stream& stream : streams_) {
    while (stream.open || !stream.pending.empty()) {
      if (!stream.pending.empty()) {
        pollfd room{stream.to, POLLOUT, 0};
        ::poll(&room, 1, -1);
        pass_on(stream);
      } else if (!read(stream) && stream.open) {
        break;  // the command has ended, another process has its output
      }
    }
  }
  return !ended();
}

bool Relay::ended() const {
  return std::ranges::all_of(streams_, [](const Stream& stream) { return !stream.open && stream.pending.empty(); });
}

}  // namespace zs::recording
