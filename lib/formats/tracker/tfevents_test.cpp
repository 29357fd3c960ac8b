// SPDX-License-Identifier: Apache-2.0
#include "tracker/tfevents.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/checksum.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "metric/table.hpp"
#include "tracker/tensorboard.hpp"

namespace zs::tracker {
namespace {

struct Reading {
  std::vector<Event> events;
  std::vector<std::string> faults;
};

Reading read(std::string_view bytes) {
  Reading reading;
  read_events(
      bytes, "f", [&](const Event& event, std::int64_t) { reading.events.push_back(event); },
      [&](const Fault& fault) { reading.faults.push_back(fault.what); });
  return reading;
}

TEST_CASE("tfevents: the checksum and the first frame are TensorFlow's") {
  CHECK(crc32c("123456789") == 0xE3069283U);
  const std::string expected(
      "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09\0\0\0\0\0\0\xf0\x3f\x1a\x0d"
      "brain.Event:2\x86\xbf\x57\x7a",
      40);
  CHECK(to_frame({1, 0, "brain.Event:2", false, {}, 0}) == expected);
  const std::string loss = to_frame({1, 7, {}, false, {{"loss", 1.5}}, 0});
  CHECK(loss.substr(12, loss.size() - 16) ==
        std::string("\x09\0\0\0\0\0\0\xf0\x3f\x10\x07\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\xc0\x3f", 26));
}

TEST_CASE("tfevents: a tensor says what a simple value says, in each type that trainers write") {
  const auto tensor = [](const std::string& inside) {  // Event{summary{value{tag "x", tensor}}}
    const std::string field = std::string("\x42") + static_cast<char>(inside.size()) + inside;
    const std::string value = "\x0a\x01x" + field;
    const std::string summary = std::string("\x0a") + static_cast<char>(value.size()) + value;
    const std::string event = std::string("\x2a") + static_cast<char>(summary.size()) + summary;
    std::string frame = to_frame({0, 0, {}, false, {}, 0});
    // The frame of other data: taken from that of an event with the same bytes is not possible, so it is made by hand.
    frame.assign(8, '\0');
    frame[0] = static_cast<char>(event.size());
    const auto masked = [](const std::string& bytes) {
      const std::uint32_t sum = crc32c(bytes), mask = ((sum >> 15) | (sum << 17)) + 0xA282EAD8U;
      return std::string(reinterpret_cast<const char*>(&mask), 4);
    };
    frame += masked(frame);
    return frame + event + masked(event);
  };
  const auto scalar = [&](const std::string& inside) {
    const Reading reading = read(tensor(inside));
    REQUIRE(reading.faults.empty());
    REQUIRE(reading.events.size() == 1);
    REQUIRE(reading.events[0].values.size() == 1);
    return reading.events[0].values[0].scalar;
  };
  CHECK(scalar(std::string("\x08\x01\x2a\x04\0\0\xc0\x3f", 8)) == 1.5);           // float_val, packed
  CHECK(scalar(std::string("\x08\x01\x22\x04\0\0\xc0\x3f", 8)) == 1.5);           // tensor_content
  CHECK(scalar(std::string("\x08\x02\x22\x08\0\0\0\0\0\0\xf8\x3f", 12)) == 1.5);  // double
  CHECK(scalar(std::string("\x08\x09\x50\x07", 4)) == 7);                         // int64_val
  CHECK(scalar(std::string("\x08\x13\x22\x02\0\x3e", 6)) == 1.5);                 // half
  CHECK(scalar(std::string("\x08\x0e\x22\x02\xc0\x3f", 6)) == 1.5);               // bfloat16
  const Reading several = read(tensor(std::string("\x08\x01\x22\x08\0\0\xc0\x3f\0\0\xc0\x3f", 12)));
  CHECK(several.events.at(0).values.empty());
  CHECK(several.events.at(0).other == 1);
  // A half is the bits of one: a float_val of nan, or 65536, is none.
  for (const std::string& value : {std::string("\0\0\xc0\x7f", 4), std::string("\0\0\x80\x47", 4)})
    CHECK(read(tensor(std::string("\x08\x13\x2a\x04", 4) + value)).events.at(0).values.empty());
  // A field of another type than expected is a fault, not the end of the process.
  const Reading wrong = read(tensor(std::string("\x0a\x01\x01", 3)));
  CHECK(wrong.faults.size() == 1);
}

TEST_CASE("tfevents: torn at every byte, what is whole before it is kept, and the rest is a fault") {
  std::string bytes = to_frame({1, 0, "brain.Event:2", false, {}, 0});
  std::vector<std::size_t> ends = {0, bytes.size()};
  for (int step = 1; step <= 3; ++step) {
    bytes += to_frame({1, step, {}, false, {{"loss", 1.0 / step}, {"note", 0, "a", true}}, 0});
    ends.push_back(bytes.size());
  }
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const Reading reading = read(std::string_view(bytes).substr(0, size));
    std::size_t whole = 0;
    while (whole + 1 < ends.size() && ends[whole + 1] <= size) ++whole;
    REQUIRE(reading.events.size() == whole);
    REQUIRE(reading.faults.size() == (ends[whole] == size ? 0 : 1));
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string wrong = bytes;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x10);
    REQUIRE(read(wrong).faults.size() == 1);
  }
}

TEST_CASE("tensorboard: facts survive as a table, whatever they hold") {
  const metric::Writer::Facts facts = {{"a", "1"}, {"b|c", "x | y \\ z"}, {"d", ""}};
  CHECK(facts_of(facts_text(facts)) == facts);
}

TEST_CASE("tensorboard: a run that goes on voids the steps that it repeats") {
  const TemporaryFolder folder;
  const std::vector<metric::ColumnInfo> columns = {{"step", metric::Type::integer, ""},
                                                   {"loss", metric::Type::real, ""}};
  TensorboardWriter writer(folder.path());
  writer.begin("r", {{"resumed_after_step", "2"}});
  for (const char* const step : {"1", "2", "3"}) writer.row(columns, {step, "0.5"});
  writer.finish({{"state_digest", "00ff"}});
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) path = entry.path().string();
  const Reading reading = read(Input(path).read_all());
  CHECK(reading.faults.empty());
  REQUIRE(reading.events.size() == 5);
  CHECK(reading.events[1].restarts);
  CHECK(reading.events[1].step == 3);
  CHECK(reading.events[3].step == 3);  // the steps before it are in an earlier file
  CHECK(reading.events[3].values.at(0).tag == "train/loss");
  CHECK(facts_of(reading.events[4].values.at(0).text).at("state_digest") == "00ff");
}

}  // namespace
}  // namespace zs::tracker
