// SPDX-License-Identifier: Apache-2.0
// Traces made event by event, and the figures of Holistic Trace Analysis worked out by hand.
#include "trace/trace.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "trace/analysis.hpp"
#include "trace/launch.hpp"
#include "trace/sums.hpp"

namespace zs::trace {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Makes the trace of a rank; times are in us.
class Recorder {
 public:
  explicit Recorder(std::int64_t rank = 0) { trace_.rank = rank; }

  /// A call of the host.
  Event& call(const char* name, double ts, double dur, Category category = Category::runtime) {
    Event event;
    event.ts = ts;
    event.dur = dur;
    event.category = category;
    event.name = static_cast<std::uint32_t>(trace_.names.size());
    trace_.names.emplace_back(name);
    trace_.events.push_back(event);
    return trace_.events.back();
  }

  /// What ran on a stream, and the call that launched it.
  void launch(const char* name, double called, double took, double ts, double dur, std::int32_t stream = 7) {
    call("cudaLaunchKernel", called, took).correlation = ++launches_;
    Event& kernel = call(name, ts, dur, Category::kernel);
    kernel.correlation = launches_;
    kernel.stream = stream;
  }

  Trace prepared(bool with_last_step = false) {
    prepare(trace_, with_last_step);
    return trace_;
  }

 private:
  Trace trace_;
  std::int64_t launches_ = 0;
};

/// {"ph": "X", ...}: an event of a file.
std::string event_json(const std::string& name, const std::string& ts, const std::string& dur) {
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "pid": 1, "tid": 1, "ts": )" + ts + R"(, "dur": )" +
         dur + "}";
}

/// A trace that was read, and the faults that were found.
struct ReadFile {
  Trace trace;
  std::vector<std::string> faults;
};
ReadFile read_file(const std::string& path) {
  ReadFile made;
  made.trace = read(path, [&](const Fault& fault) { made.faults.push_back(fault.what); });
  return made;
}

TEST_CASE("trace: what a kernel is for, by its name") {
  CHECK(kind_of("ncclDevKernel_AllGather_RING_LL(ncclDevComm*)") == Kind::communication);
  CHECK(kind_of("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm>") == Kind::computation);
  CHECK(kind_of("Memcpy HtoD (Pinned -> Device)") == Kind::memory);
  CHECK(kind_of("Memset (Device)") == Kind::memory);
  CHECK(kind_of("Event Sync") == Kind::other);
}

TEST_CASE("trace: spans that touch are one, and none counts twice") {
  const std::vector<Span> spans = merged({{5, 7}, {0, 2}, {2, 3}, {6, 6.5}, {9, 9}});
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].end == 3);
  CHECK(spans[1].end == 7);
  CHECK(length(spans) == 5);
  CHECK(length(merged({})) == 0);
}

TEST_CASE("trace: figures, quantiles and percentages by hand") {
  CHECK(figures({2, 4, 9}) == std::vector<std::string>{"3", "15", "5", text(std::sqrt(13.0)), "2", "9"});
  CHECK(figures({3}) == std::vector<std::string>{"1", "3", "3", "0", "3", "3"});
  CHECK(quantile({1, 2, 4, 8}, 0.5) == 3);
  CHECK(quantile({1, 2, 4, 8}, 1) == 8);
  CHECK(percent(1, 3) == "33.33");
  CHECK(percent(1, 3, 10) == "33.3");
  CHECK(percent(1, 0).empty());
}

TEST_CASE("trace: the names with the most time have rows, and the others one together") {
  const Sheet answer = by_name("kernel", {{"a", {1, 2}}, {"b", {9}}, {"c", {1}}, {"d", {1.5}}}, {30, 2});
  CHECK(answer.header.front() == "kernel");
  REQUIRE(answer.rows.size() == 3);
  CHECK(answer.rows[0][0] == "b");
  CHECK(answer.rows[1][0] == "a");
  CHECK(answer.rows[2] ==
        std::vector<std::string>{"(2 others)", "2", "2.5", "1.25", text(std::sqrt(0.125)), "1", "1.5"});
}

TEST_CASE("trace: events are linked with what launched them and what called them, from the first event on") {
  Recorder recorder;
  recorder.call("aten::mm", 100, 50, Category::cpu_op);
  recorder.call("aten::add", 110, 20, Category::cpu_op);
  recorder.launch("gemm", 120, 5, 200, 30);
  const Trace trace = recorder.prepared();
  CHECK(trace.events[0].ts == 0);
  CHECK(trace.events[1].caller == 0);
  CHECK(trace.events[2].caller == 1);
  CHECK(trace.events[2].partner == 3);
  CHECK(trace.events[3].partner == 2);
  CHECK(trace.events[3].gpu);
  CHECK_FALSE(trace.events[2].gpu);
}

TEST_CASE("trace: of several steps the last, which is mostly cut, counts only if asked for") {
  Recorder recorder;
  recorder.call("ProfilerStep#4", 0, 100, Category::annotation);
  recorder.launch("first", 10, 5, 90, 30);
  recorder.call("ProfilerStep#5", 100, 50, Category::annotation);
  recorder.launch("second", 110, 5, 130, 10);
  recorder.launch("later", 160, 5, 170, 10);
  Recorder again = recorder;
  const auto kernels = [](const Trace& trace) {
    std::string names;
    for (const Event& event : trace.events) names += event.gpu ? trace.name(event) + " " : "";
    return names;
  };
  CHECK(kernels(recorder.prepared()) == "first ");  // launched in step 4, though it ends in step 5
  CHECK(kernels(again.prepared(/*with_last_step=*/true)) == "first second ");
}

TEST_CASE("trace: a queue grows at a launch and shrinks where its kernel begins") {
  Recorder recorder;
  recorder.launch("a", 0, 1, 10, 5);
  recorder.launch("b", 2, 1, 15, 5);
  recorder.launch("c", 3, 1, 4, 5, /*stream=*/9);
  const auto streams = queues(recorder.prepared());
  REQUIRE(streams.size() == 2);
  CHECK(streams.at(7).times == std::vector<double>{0, 2, 10, 15});
  CHECK(streams.at(7).lengths == std::vector<double>{1, 2, 1, 0});
  CHECK(streams.at(9).lengths == std::vector<double>{1, 0});
}

TEST_CASE("trace: delays of launches, short kernels and slow calls") {
  Recorder recorder;
  recorder.launch("quick", 0, 10, 12, 4);      // begins 2 us after its call, and is shorter than it
  recorder.launch("late", 20, 10, 180, 40);    // 150 us after
  recorder.launch("slow", 300, 60, 362, 100);  // a call of more than 50 us
  const std::vector<Trace> traces = {recorder.prepared()};
  CHECK(launch(traces, {}).rows == Rows{{"0", "3", text(154.0 / 3), "2", "150", "1", "1", "1"}});
  CHECK(delays(traces, {}).rows == Rows{{"", "late", "1", "1", "100", "150", "150", "150"}});
}

TEST_CASE("trace: the critical path has no gaps, and says what each stretch waited for") {
  Recorder recorder;
  recorder.launch("gemm", 0, 5, 5, 100);                       // waits for its launch alone
  recorder.launch("ncclDevKernel_AllReduce", 10, 5, 105, 50);  // waits for the kernel before it
  recorder.call("cudaStreamSynchronize", 20, 140);             // the host waits for both, to 160
  recorder.launch("adam", 170, 10, 180, 20);                   // and then launches the last
  const Trace trace = recorder.prepared();
  const std::vector<Stretch> path = critical_path(trace, 30);
  REQUIRE(!path.empty());
  CHECK(path.front().end == 200);
  CHECK(path.back().begin == 0);
  for (std::size_t i = 1; i < path.size(); ++i) CHECK(path[i].end == path[i - 1].begin);
  const std::vector<Trace> traces = {trace};
  CHECK(critical(Question(traces), 10).rows ==
        Rows{{"0", "computation", "120", "60"}, {"0", "communication", "50", "25"}, {"0", "host", "30", "15"}});
  CHECK(critical_path(Trace(), 30).empty());
}

TEST_CASE("trace: the rank that is in a collective shortest came last, and the others waited for it") {
  std::vector<Trace> traces;
  for (const double dur : {50.0, 10.0, 40.0}) {
    Recorder recorder(static_cast<std::int64_t>(traces.size()));
    recorder.launch("ncclDevKernel_AllReduce", 0, 1, 100, dur);
    traces.push_back(recorder.prepared());
  }
  CHECK(stragglers(traces, {}).rows == Rows{{"ncclDevKernel_AllReduce", "1", "1", "1", "100", "70", "70"}});
  traces.resize(1);
  CHECK(stragglers(traces, {}).rows.empty());
}

TEST_CASE("trace: a file torn at any byte keeps the events before, and says so") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/t.json";
  const std::string head = R"({"distributedInfo": {"rank": 2, "world_size": 4}, "traceEvents": [)";
  const std::string one = event_json("a", "10.25", "4.5"), two = event_json("b", "20", "3");
  const std::string text = head + one + ", " + two + "]}";
  write_file(path, text);
  const ReadFile whole = read_file(path);
  CHECK(whole.faults.empty());
  REQUIRE(whole.trace.events.size() == 2);
  CHECK(whole.trace.rank == 2);
  CHECK(whole.trace.world_size == 4);
  CHECK(whole.trace.events[0].ts == 0);  // since the first event
  CHECK(whole.trace.events[0].end() == 4.5);
  CHECK(whole.trace.events[1].ts == 9.75);
  const Trace rounded = read(
      path, [](const Fault&) {}, true);
  CHECK(rounded.events[0].dur == 3);  // whole microseconds inside of 10.25 to 14.75
  CHECK(rounded.events[1].ts == 9);
  for (std::size_t size = head.size() + one.size(); size + 1 < text.size(); ++size) {
    CAPTURE(size);
    write_file(path, text.substr(0, size));
    const ReadFile torn = read_file(path);
    CHECK(torn.faults.size() == 1);
    CHECK(torn.trace.events.size() == (size < text.size() - 2 ? 1U : 2U));
  }
  for (std::size_t size = 0; size < head.size() + one.size(); ++size) {
    CAPTURE(size);
    write_file(path, text.substr(0, size));
    CHECK_THROWS_AS(read_file(path), Error);
  }
}

TEST_CASE("trace: an event whose time is no time is left out and counted") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/t.json";
  write_file(path, R"({"traceEvents": [)" + event_json("a", "1", "-4") + ", " + event_json("b", "NaN", "4") + ", " +
                       event_json("c", "1", "4") + "]}");
  const ReadFile reading = read_file(path);
  REQUIRE(reading.trace.events.size() == 1);
  CHECK(reading.trace.name(reading.trace.events[0]) == "c");
  REQUIRE(reading.faults.size() == 1);
  CHECK(reading.faults[0].find("2 events") != std::string::npos);
}

TEST_CASE("trace: a second one of a rank is a fault") {
  const TemporaryFolder folder;
  std::vector<std::string> files;
  for (const char* const name : {"a", "b"}) {
    files.push_back(folder.file(name));
    write_file(files.back(),
               R"({"distributedInfo": {"rank": 1}, "traceEvents": [)" + event_json(name, "1", "4") + "]}");
  }
  std::vector<std::string> faults;
  const auto traces = read_all(files, {}, [&](const Fault& fault) { faults.push_back(fault.what); });
  CHECK(traces.size() == 2);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].find("rank 1") != std::string::npos);
}

}  // namespace
}  // namespace zs::trace
