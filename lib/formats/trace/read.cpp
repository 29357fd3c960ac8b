// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "base/number.hpp"
#include "base/words.hpp"
#include "trace/scan.hpp"
#include "trace/trace.hpp"

namespace zs::trace {
namespace {

constexpr double kLatest = 9e15, kLongestEvent = 1e15;  // us: more would spoil every sum

double number(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
  double value = std::nan("");
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// A time in microseconds as nanoseconds: a double holds no nanoseconds of the microseconds since 1970. Digits behind
/// the nanosecond are dropped. nullopt if it is no time up to kLatest.
std::optional<std::int64_t> nanoseconds(std::string_view text) {
  const double rough = number(text);
  if (!(std::fabs(rough) <= kLatest)) return std::nullopt;
  if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
  const std::size_t point = text.find('.');
  std::int64_t whole = 0, part = 0;
  if (text.find_first_of("eE") != std::string_view::npos) return std::llround(rough * 1000);
  std::from_chars(text.data(), text.data() + std::min(point, text.size()), whole);
  if (point != std::string_view::npos) {
    std::string digits(text.substr(point + 1, 3));
    digits.resize(3, '0');
    std::from_chars(digits.data(), digits.data() + 3, part);
  }
  return whole * 1000 + (text.front() == '-' ? -part : part);
}

std::int64_t integer(std::string_view text) {
  const double value = number(text);
  return std::isfinite(value) && std::fabs(value) < 9e18 ? static_cast<std::int64_t>(value) : -1;
}

/// A text without its quotes and escapes.
std::string unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"') return std::string(text);
  if (text.find('\\') == std::string_view::npos) return std::string(text.substr(1, text.size() - 2));
  const auto decoded = nlohmann::json::parse(text, nullptr, false);
  return decoded.is_string() ? decoded.get<std::string>() : std::string(text.substr(1, text.size() - 2));
}

Category category_of(std::string_view quoted) {
  static const std::unordered_map<std::string_view, Category> kNames = {
      {"cpu_op", Category::cpu_op},
      {"Operator", Category::cpu_op},
      {"user_annotation", Category::annotation},
      {"gpu_user_annotation", Category::gpu_annotation},
      {"kernel", Category::kernel},
      {"Kernel", Category::kernel},
      {"gpu_memcpy", Category::memcpy},
      {"Memcpy", Category::memcpy},
      {"gpu_memset", Category::memset},
      {"Memset", Category::memset},
      {"cuda_runtime", Category::runtime},  // of HIP too
      {"cuda_driver", Category::runtime},
      {"xpu_runtime", Category::runtime},
      {"xpu_driver", Category::runtime},
      {"mtia_runtime", Category::runtime},
      {"privateuse1_runtime", Category::runtime},
      {"privateuse1_driver", Category::runtime},
      {"Runtime", Category::runtime},
      {"cuda_sync", Category::sync},
      {"xpu_sync", Category::sync},
  };
  const auto found = kNames.find(quoted.substr(1, quoted.size() - 2));
  return found == kNames.end() ? Category::other : found->second;
}

class Reader {
 public:
  Reader(const std::string& path, const FaultSink& faults, bool whole_microseconds)
      : faults_(faults), text_(path, located_), whole_microseconds_(whole_microseconds) {
    trace_.path = path;
  }

  Trace run() {
    text_.skip_blanks();
    if (text_.peek() == '[') {
      events();
    } else {
      if (text_.peek() != '{') throw Error(trace_.path, 0, "is not a profiler trace: it does not begin with '{'");
      text_.skip(1);
      members();
    }
    if (trace_.read == 0) throw Error(trace_.path, 0, "holds no event: is it a profiler trace?");
    if (trace_.events.empty() && trace_.memory.empty() && wrong_ == 0)
      fault("none of its " + to_text(trace_.read) + " events has a duration: is it a profiler trace?");
    if (wrong_ > 0)
      fault(to_text(wrong_) + (wrong_ == 1 ? " event has" : " events have") +
            " no time or duration that is one: left out");
    if (counted_ == 0 && !uncounted_.empty())
      fault("has events of a device, and none that zs-trace counts: their categories are " +
            some_of({uncounted_.begin(), uncounted_.end()}, 5));
    return std::move(trace_);
  }

 private:
  void fault(const std::string& what) { faults_({trace_.path, 0, what}); }

  void members() {
    while (true) {
      text_.skip_blanks();
      if (text_.peek() == '}') return;
      const std::string key = unquoted(text_.value());
      text_.skip_blanks();
      if (key.empty() || text_.peek() != ':') return cut();
      text_.skip(1);
      text_.skip_blanks();
      if (key == "traceEvents" && text_.peek() == '[') {
        if (!events()) return;
      } else {
        const std::string_view value = text_.value();
        if (value.empty()) return cut();
        if (key == "distributedInfo" && value.front() == '{') ranks(value);
      }
      text_.skip_blanks();
      if (text_.peek() == ',') text_.skip(1);
    }
  }

  void cut() {
    fault("is cut short, or malformed, at byte " + to_text(text_.place()) + ", after " + to_text(trace_.read) +
          " events, which are kept");
  }

  void ranks(std::string_view object) {
    std::string_view key, value;
    try {
      for (Fields fields(object); fields.next(key, value);) {
        if (key == "rank") trace_.rank = integer(value), trace_.rank_known = true;
        if (key == "world_size") trace_.world_size = integer(value);
      }
    } catch (const Error&) {
      fault("distributedInfo is malformed");
    }
  }

  bool events() {
    text_.skip(1);
    while (true) {
      text_.skip_blanks();
      if (text_.peek() == ']') return text_.skip(1), true;
      const std::string_view object = text_.peek() == '{' ? text_.value() : std::string_view();
      if (object.empty()) return cut(), false;
      ++trace_.read;
      try {
        add(object);
      } catch (const Error&) {
        fault("event " + to_text(trace_.read) + " is malformed: left out");
      }
      text_.skip_blanks();
      if (text_.peek() == ',') text_.skip(1);
    }
  }

  void add(std::string_view object) {
    Event event;
    std::string_view key, value, name, category, args, ts, dur, thread, phase;
    for (Fields fields(object); fields.next(key, value);) {
      if (key == "name")
        name = value;
      else if (key == "cat")
        category = value;
      else if (key == "ts")
        ts = value;
      else if (key == "dur")
        dur = value;
      else if (key == "tid")
        thread = value;
      else if (key == "ph")
        phase = value;
      else if (key == "args")
        args = value;
    }
    if (name == "\"[memory]\"") return add_memory(ts, args);
    if (phase == "\"X\"" && dur.empty()) ++wrong_;  // a complete event has one
    if (dur.empty() || category.size() < 2 || category.front() != '"' || category == "\"Trace\"") return;
    auto begin = nanoseconds(ts);
    auto length = nanoseconds(dur);
    if (!begin || !length || *length < 0 || *length > kLongestEvent * 1000) return void(++wrong_);
    if (whole_microseconds_ && ts.find('.') != std::string_view::npos) {
      const std::int64_t end = *begin + *length, from = *begin + 999;
      begin = from - (from % 1000 + 1000) % 1000;
      length = std::max<std::int64_t>(0, end - (end % 1000 + 1000) % 1000 - *begin);
    }
    event.ts = since_first(*begin);
    event.dur = static_cast<double>(*length) / 1000;
    event.category = category_of(category);
    event.thread = static_cast<std::int32_t>(integer(thread));
    event.name = number_of(name);
    std::int64_t stream = -1;
    if (args.size() > 2 && args.front() == '{') {
      for (Fields fields(args); fields.next(key, value);) {
        if (key == "stream")
          stream = integer(value);
        else if (key == "correlation")
          event.correlation = integer(value);
        else if (key == "memory bandwidth (GB/s)")
          event.bandwidth = number(value);
      }
    }
    // A host's call may name the stream that it launches on: the category says where an event ran.
    if (on_device(event.category)) {
      event.stream = static_cast<std::int32_t>(stream);
      counted_ += event.category != Category::sync;
    }
    if (event.category == Category::gpu_annotation ||
        (event.category == Category::other && stream >= 0 && event.correlation >= 0))
      uncounted_.insert(unquoted(category));
    trace_.events.push_back(event);
  }

  /// Microseconds since the first event.
  double since_first(std::int64_t time) {
    if (first_ == INT64_MIN) first_ = time;
    return static_cast<double>(time - first_) / 1000;
  }

  void add_memory(std::string_view ts, std::string_view args) {
    const auto time = nanoseconds(ts);
    if (!time) return void(++wrong_);
    Memory memory{since_first(*time), 0, -1, -1};
    std::string_view key, value;
    for (Fields fields(args); fields.next(key, value);) {
      if (key == "Device Id")
        memory.device = integer(value);
      else if (key == "Total Allocated")
        memory.allocated = integer(value);
      else if (key == "Total Reserved")
        memory.reserved = integer(value);
    }
    if (memory.allocated >= 0) trace_.memory.push_back(memory);
  }

  std::uint32_t number_of(std::string_view quoted) {
    scratch_.assign(quoted);
    const auto known = numbers_.find(scratch_);
    if (known != numbers_.end()) return known->second;
    const auto made = static_cast<std::uint32_t>(trace_.names.size());
    numbers_.emplace(scratch_, made);
    trace_.names.push_back(unquoted(quoted));
    return made;
  }

  Trace trace_;
  const FaultSink& faults_;
  const FaultSink located_ = [this](const Fault& one) { faults_({"", 0, one.what}); };
  Text text_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::string scratch_;
  const bool whole_microseconds_;
  std::int64_t first_ = INT64_MIN;  // ns: the time of the first event
  std::int64_t wrong_ = 0, counted_ = 0;
  std::set<std::string> uncounted_;  // categories of a device's events that no analysis counts
};

}  // namespace

Trace read(const std::string& path, const FaultSink& faults, bool whole_microseconds) {
  return Reader(path, faults, whole_microseconds).run();
}

namespace {

/// "trace-rank-3.json" -> 3; -1 if the name has no rank.
std::int64_t rank_in(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  std::size_t at = name.find("rank");
  if (at == std::string::npos) return -1;
  at = name.find_first_not_of("-_", at + 4);
  const std::size_t end = at == std::string::npos ? at : name.find_first_not_of("0123456789", at);
  return at == std::string::npos ? -1 : parse_int(name.substr(at, end - at)).value_or(-1);
}

std::string events(std::size_t count, const char* what) {
  return to_text(static_cast<std::int64_t>(count)) + " " + what + (count == 1 ? "" : "s");
}

/// Reports contradictory times.
void check_clocks(const Trace& trace, const FaultSink& faults) {
  constexpr double kRounded = 1;  // us: what cutting off fractions may do
  std::size_t early = 0, across = 0;
  double most = 0;
  for (const Event& event : trace.events) {
    if (event.category == Category::cpu_op && event.caller >= 0)
      across += event.end() > trace.events[static_cast<std::size_t>(event.caller)].end() + kRounded;
    if (!event.gpu || event.partner < 0) continue;
    const double before = trace.events[static_cast<std::size_t>(event.partner)].ts - event.ts;
    if (before <= kRounded) continue;
    ++early;
    most = std::max(most, before);
  }
  if (early > 0) {
    faults({trace.path, 0,
            events(early, "kernel") + (early == 1 ? " begins" : " begin") + " before the launch, by up to " +
                to_text(most) + " us: the clocks of host and GPU disagree, and waits are as wrong"});
  }
  if (across > 0) {
    faults({trace.path, 0,
            events(across, "operator") + (across == 1 ? " ends" : " end") +
                " after the operator around it: the host's clock went back, or events are missing"});
  }
}

}  // namespace

std::vector<Trace> read_all(const std::vector<std::string>& files, const Reading& how, const FaultSink& faults) {
  std::vector<Trace> traces;
  for (const std::string& file : files) {
    Trace one = read(file, faults, how.whole_microseconds);
    if (!one.rank_known) one.rank = rank_in(file) >= 0 ? rank_in(file) : static_cast<std::int64_t>(traces.size());
    prepare(one, how.with_last_step);
    check_clocks(one, faults);
    traces.push_back(std::move(one));
  }
  std::ranges::stable_sort(traces, [](const Trace& a, const Trace& b) { return a.rank < b.rank; });
  std::set<std::int64_t> ranks;
  for (const Trace& one : traces) {
    if (!ranks.insert(one.rank).second) faults({one.path, 0, "is a second trace of rank " + to_text(one.rank)});
  }
  return traces;
}

}  // namespace zs::trace
