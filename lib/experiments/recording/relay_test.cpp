// SPDX-License-Identifier: Apache-2.0
#include "recording/relay.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"

namespace zs::recording {
namespace {

/// A relay from one pipe, `in`, to another, `out`; or to the file `to`.
struct Relayed {
  TemporaryFolder folder{};
  std::array<int, 2> in{-1, -1}, out{-1, -1};
  std::vector<std::string> warned{};
  std::string path;
  Relay relay;
  std::vector<Command::Stream> streams{};

  explicit Relayed(const std::string& log = "", const char* to = nullptr)
      : path(log.empty() ? folder.file("run.log") : log),
        relay(path, [this](const std::string& text) { warned.push_back(text); }) {
    std::signal(SIGPIPE, SIG_IGN);
    REQUIRE(::pipe2(in.data(), O_NONBLOCK) == 0);
    REQUIRE(::pipe(out.data()) == 0);
    if (to) ::close(out[1]), out[1] = ::open(to, O_WRONLY);
    streams = {{in[0], out[1]}};
    relay.add(streams);
  }
  ~Relayed() {
    for (const int file : {in[0], in[1], out[0], out[1]}) {
      if (file >= 0) ::close(file);
    }
    std::signal(SIGPIPE, SIG_DFL);
  }
  Relayed(const Relayed&) = delete;
  Relayed& operator=(const Relayed&) = delete;

  void print(const std::string& bytes) const { CHECK(::write(in[1], bytes.data(), bytes.size()) == std::ssize(bytes)); }
  void end() { ::close(in[1]), in[1] = -1; }
  std::string passed() const {
    std::string bytes(1 << 20, '\0');
    pollfd ready{out[0], POLLIN, 0};
    bytes.resize(::poll(&ready, 1, 0) > 0 ? static_cast<std::size_t>(::read(out[0], bytes.data(), bytes.size())) : 0);
    return bytes;
  }
  std::string logged() const { return Input(path).read_all(); }
};

TEST_CASE("relay: each byte goes to the log and on, and the end of a stream is known") {
  Relayed one;
  const std::string bytes("a\rb\n\0\xff no end", 13);
  one.print(bytes);
  one.relay.work();
  CHECK(one.passed() == bytes);
  CHECK(one.logged() == bytes);
  CHECK(one.relay.bytes() == 13);
  CHECK(one.relay.waits().at(0).file == one.in[0]);
  CHECK_FALSE(one.relay.ended());
  CHECK(one.relay.drain());  // another process still has the stream open
  one.print("last");
  one.end();
  CHECK_FALSE(one.relay.drain());
  CHECK(one.passed() == "last");
  CHECK(one.relay.ended());
  CHECK(one.warned.empty());
}

TEST_CASE("relay: a reader that is slow is waited for, and loses nothing") {
  Relayed one;
  ::fcntl(one.out[1], F_SETPIPE_SZ, 4096);
  const std::string bytes(60000, 'x');
  one.print(bytes);
  one.relay.work();
  CHECK(one.relay.waits().at(0).file == one.out[1]);
  CHECK(one.relay.waits().at(0).events == POLLOUT);
  CHECK(one.logged() == bytes);
  std::size_t seen = 0;
  for (int i = 0; i < 100 && seen < bytes.size(); ++i) seen += one.passed().size(), one.relay.work();
  CHECK(seen == bytes.size());
  CHECK(one.relay.waits().at(0).file == one.in[0]);
}

TEST_CASE("relay: a reader that is gone ends nothing and is no fault; a full device is told once") {
  Relayed gone;
  ::close(gone.out[0]), gone.out[0] = -1;
  Relayed full("", "/dev/full");
  for (Relayed* const one : {&gone, &full}) {
    for (const char* const text : {"one ", "two"}) one->print(text), one->relay.work();
    CHECK(one->logged() == "one two");
    CHECK(one->relay.waits().at(0).file == one->in[0]);
  }
  CHECK(gone.warned.empty());
  REQUIRE(full.warned.size() == 1);
  CHECK(full.warned[0].find("No space left on device: the output of the command is in " + full.path) !=
        std::string::npos);
}

TEST_CASE("relay: a log that cannot grow is told once, what it lacks is counted, and the output goes on") {
  Relayed one("/dev/full");
  for (const char* const text : {"one ", "two"}) one.print(text), one.relay.work();
  CHECK(one.passed() == "one two");
  CHECK(one.relay.not_logged() == 7);
  CHECK(one.warned == std::vector<std::string>{
                          "/dev/full: write: No space left on device: the command continues, its log has a gap"});
  CHECK_THROWS_AS(Relay("/no/such/folder/run.log", [](const std::string&) {}), Error);
}

}  // namespace
}  // namespace zs::recording
