// SPDX-License-Identifier: Apache-2.0
#include "parse/log.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <random>

namespace zs::parse {
namespace {

/// All that comes out of a log, as one text.
class Transcript : public metric::Writer {
 public:
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override {
    for (std::size_t i = 0; i < cells.size(); ++i) text += columns[i].name + "=" + std::string(cells[i]) + " ";
    text += "\n";
  }
  void finish(const std::map<std::string, std::string>& attributes) override { known = attributes; }
  std::string text;
  std::map<std::string, std::string> known;
};

class LogFile {
 public:
  explicit LogFile(const std::string& text) : name_("/tmp/zs-log-test-" + std::to_string(::getpid())) {
    std::ofstream(name_, std::ios::binary) << text;
  }
  ~LogFile() { ::unlink(name_.c_str()); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

Stats read_log_file(const LogFile& log, const Options& options, metric::Writer& rows, std::string& faults) {
  const FaultSink sink = [&](const Fault& fault) { faults += std::to_string(fault.line) + ": " + fault.what + "\n"; };
  LogReader reader(options, rows, sink);
  reader.read(log.name());
  reader.finish();
  return reader.stats();
}

Stats read_log_file(const LogFile& log, const Options& options, Transcript& out) {
  return read_log_file(log, options, out, out.text);
}

/// The text form of a log.
std::string text_of(const LogFile& log, const Options& options) {
  std::string text, faults;
  metric::TsvWriter writer([&](std::string_view block) { text += block; });
  metric::TextWriter rows(writer);
  rows.begin("run", {});
  read_log_file(log, options, rows, faults);
  return text + faults;
}

/// A log of several dialects, with all sorts of numbers, torn lines and other text.
std::string made_log(std::mt19937& random) {
  const auto pick = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  const auto number = [&] {
    return pick({"2.5", "nan", "-inf", "1e-05", "0.4812662601470947", "7", "-0.25", "12345678901234567890", "1.", ".5",
                 "x", "", "3.0E+2"});
  };
  std::string log;
  for (int line = 0; line < 60; ++line) {
    const std::string step =
        random() % 16 == 0 ? pick({"1.", "2.5", "-3", "01", "1e3"}) : std::to_string(random() % 3000);
    std::string text =
        pick({"", "", "[rank0]: ", "[rank3]: ", "[rank-3]: ", "[1,2]<stdout>:", "[1,2.5]<stdout>:"}) +
        pick({"Epoch 1, Step " + step + ", Loss: " + number() + " sync: " + pick({"True", "False", "maybe"}) +
                  " time: " + number() + " alloc_mem: " + pick({"28307113472", "5", "2.5"}) + " peak_mem: 50064946688",
              "{\"step\": " + step + ", \"loss\": " + number() + ", \"x\": " + number() + "}", "something else", "",
              "run: seed=" + step, "iter " + step + ": loss " + number() + ", time " + number() + "ms, mfu 1.5%"});
    if (random() % 8 == 0) text.resize(random() % (text.size() + 1));
    if (random() % 16 == 0) text += text;
    log += text + (random() % 10 == 0 ? "\r" : random() % 12 == 0 ? "\r\n" : "\n");
  }
  if (random() % 2) log.resize(log.size() - random() % std::min<std::size_t>(log.size(), 40));
  return log;
}

/// The rows of a log, and its faults.
std::string rows_of(const std::string& text) {
  Transcript out;
  read_log_file(LogFile(text), {}, out);
  return out.text;
}

TEST_CASE("general: a line is read behind a value whose unit is unknown") {
  const std::string head = "step 1/2 loss 2.5 ";
  for (const std::string value : {"power 300W", "flops 8.2k", "eta 0:01:02", "ratio: 3x", "size 1.5GB"})
    CHECK_MESSAGE(rows_of(head + value + " grad_norm nan\n") == "step=1 loss=2.5 grad_norm=nan line=1 \n", value);
  CHECK(rows_of(head + "tflops 120 TFLOPS, grad_norm nan\n") == "step=1 loss=2.5 tflops=120 grad_norm=nan line=1 \n");
  CHECK(rows_of("step 1 loss 2.5 nats grad_norm nan\n") == "step=1 loss=2.5 grad_norm=nan line=1 \n");
  CHECK(rows_of("step 1 lr 0.1 mem 1GB loss: 3.5\n") ==
        "step=1 learning_rate=0.1 alloc_mem=1073741824 loss=3.5 line=1 \n");
  for (const std::string memory : {"max_mem 2MiB", "max_mem: 2M", "max mem 2 MB"})
    CHECK_MESSAGE(
        rows_of(head + memory + " time 0.1s\n") == "step=1 loss=2.5 peak_mem=2097152 iteration_time=0.1 line=1 \n",
        memory);
}

TEST_CASE("a time of day is no duration of a step") {
  CHECK(rows_of("{\"step\": 1, \"loss\": 2.5, \"time\": 1790000010.5}\n") ==
        "step=1 loss=2.5 timestamp=1790000010.5 line=1 \n");
  CHECK(rows_of("{\"step\": 1, \"loss\": 2.5, \"time\": \"2026-11-29T01:00:01\"}\n") ==
        "step=1 loss=2.5 timestamp=2026-11-29T01:00:01 line=1 \n");
  CHECK(rows_of("{\"step\": 1, \"loss\": 2.5, \"time\": 0.5}\n") == "step=1 loss=2.5 iteration_time=0.5 line=1 \n");
}

TEST_CASE("a log reads alike in blocks of any size; each line is accounted for") {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const LogFile log(made_log(random) + "z");
    Transcript usual;
    const Stats stats = read_log_file(log, {}, usual);
    std::int64_t lines = stats.faulty + stats.other;
    for (const auto& [dialect, count] : stats.matched) lines += count;
    CHECK(lines == stats.lines);
    CHECK(stats.other >= 0);
    for (const std::size_t block : {2, 7, 100}) {
      Options options;
      options.block = block;
      Transcript other;
      read_log_file(log, options, other);
      REQUIRE(other.text == usual.text);
      REQUIRE(other.known == usual.known);
    }
  }
}

TEST_CASE("lines alike but for their numbers give the same text in one block, in pieces, and read ahead or not") {
  std::mt19937 random(11);
  const auto digits = [&](std::size_t most) {
    std::string text;
    for (std::size_t i = 1 + random() % most; i > 0; --i) text += static_cast<char>('0' + random() % 10);
    return text;
  };
  const auto number = [&]() -> std::string {
    switch (random() % 12) {
      case 0:
        return "-" + digits(3) + "." + digits(20);
      case 1:
        return digits(2) + "e-" + digits(2);
      case 2:
        return digits(40) + "." + digits(40);
      case 3:
        return random() % 2 ? "nan" : "-inf";
      case 4:
        return "+" + digits(2);
      case 5:
        return digits(9) + ".";
      default:
        return digits(2) + "." + digits(6);
    }
  };
  for (int round = 0; round < 40; ++round) {
    std::string text;
    for (int line = 0; line < 400; ++line) {
      std::string next = "Epoch 1, Step " + digits(random() % 50 ? 5 : 22) + ", Loss: " + number() +
                         " sync: " + (random() % 3 ? "True" : "False") + " time: " + number() +
                         " alloc_mem: " + digits(12) + " peak_mem: 50064946688\n";
      if (random() % 64 == 0) next[random() % next.size()] = static_cast<char>(random());
      text += next;
      if (round % 2 == 1 && random() % 5 == 0)
        text += "iter " + digits(3) + ": loss " + number() + ", time 5ms, mfu 1%\n";
    }
    const LogFile log(text);
    Options slow, pieces;
    slow.ahead = false;
    pieces.block = 1000;
    const std::string expected = text_of(log, slow);
    REQUIRE(text_of(log, {}) == expected);
    REQUIRE(text_of(log, pieces) == expected);
  }
}

TEST_CASE("the example of each dialect is read by it alone") {
  for (const Entry& entry : dialects()) {
    CAPTURE(entry.name);
    std::string text = std::string(entry.example) + "\n";
    if (entry.name == "csv") text += "10,2.0751,0.0003\n";
    Transcript out;
    const Stats stats = read_log_file(LogFile(text), {}, out);
    CHECK(stats.matched.size() == 1);
    CHECK(stats.matched.count(std::string(entry.name)) == 1);
    CHECK(stats.faulty == 0);
  }
}

TEST_CASE("a marker is found in every example, so that a dialect does not miss its own lines") {
  for (const Entry& entry : dialects()) {
    CAPTURE(entry.name);
    std::string text;
    for (int i = 0; i < 200; ++i) text += "other text\n";  // past the lines that all dialects see
    text += std::string(entry.example) + "\n";
    if (entry.name == "csv") text += "10,2.0751,0.0003\n";
    Transcript out;
    CHECK(read_log_file(LogFile(text), {}, out).matched.count(std::string(entry.name)) == 1);
  }
}

}  // namespace
}  // namespace zs::parse
