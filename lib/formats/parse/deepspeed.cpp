// SPDX-License-Identifier: Apache-2.0
// Lines that the DeepSpeed engine prints (steps_per_print, wall_clock_breakdown, see_memory_usage):
//   [...] [INFO] [logging.py:107:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-06], mom=[(0.9, 0.999)]
//   [...] [INFO] [timer.py:264:stop] epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=16.6,
//         CurrSamplesPerSec=16.7, MemAllocated=26.36GB, MaxMemAllocated=46.63GB
//   [...] [INFO] [logging.py:107:log_dist] [Rank 0] time (ms) | fwd: 66.11 | bwd: 130.2 | step: 5.1
//   [...] [INFO] [utils.py:782:see_memory_usage] MA 14.96 GB         Max_MA 14.96 GB         CA 14.97 GB ...
// The first three describe one step and become one record, together with the program's own line for that step.
// DeepSpeed-Chat evaluates between epochs, without a step:
//   ***** Evaluating perplexity, Epoch 1/16 *****
//   ppl: 2.1
#include <algorithm>
#include <array>
#include <utility>

#include "base/number.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

class DeepSpeed : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    const std::string_view text = line.text;
    if (const std::size_t at = text.find("step="); at != std::string_view::npos && starts_word(text, at)) {
      const std::string_view rest = text.substr(at);
      if (rest.find(", skipped=") != std::string_view::npos) return read_step(line, at, emitter);
      std::string_view number = rest.substr(5);
      const bool cut =
          !take_number(number).text.empty() && (number.empty() || std::string_view(", skipped=").starts_with(number));
      if (cut && text.find("log_dist]") != std::string_view::npos)
        return {false, "malformed DeepSpeed step line: it ends early"};
    }
    const std::size_t speed = text.find("SamplesPerSec=");  // behind '|' in DeepSpeed-Chat's lines of times
    if (speed != std::string_view::npos && text.find("E2E latency=") > speed) return read_throughput(line, emitter);
    if (const std::size_t at = text.find("***** Evaluating "); at != std::string_view::npos)
      return read_heading(text.substr(at));
    if (!evaluated_.empty()) return read_evaluation(line, emitter);
    if (text.find("[launch.py:") != std::string_view::npos && text.ends_with(" exits successfully."))
      return emitter.attribute("exit_state", "finished"), Verdict{true};
    if (const std::size_t at = text.find("time (ms) | "); at != std::string_view::npos) return read_breakdown(line, at);
    if (const std::size_t at = text.find("MA ");
        at != std::string_view::npos && text.find("Max_MA ") != std::string_view::npos) {
      return read_memory(text.substr(at), emitter);
    }
    return {};
  }

  bool companion() const override { return true; }
  bool wants_all() const override { return !evaluated_.empty(); }
  bool holds() const override { return !open_.empty() || !pending_.empty(); }

  std::vector<Field> give(std::string_view step, std::string_view rank, Emitter& emitter) override {
    others_ = true;
    alone_.clear();
    if (open_.empty()) {
      const std::string pending_rank = rank_of(pending_prefix_);
      if (!rank.empty() && !pending_rank.empty() && rank != pending_rank) return {};
      given_ = std::exchange(pending_, {});
      return fields_of(given_);
    }
    given_rank_ = rank_of(open_prefix_);
    const bool same = open_.front().value == step && (rank.empty() || given_rank_.empty() || rank == given_rank_);
    if (!same) return emit(emitter), std::vector<Field>{};
    given_ = std::exchange(open_, {});
    std::vector<Field> fields = fields_of(given_);
    if (rank.empty() && !given_rank_.empty()) fields.push_back({"rank", given_rank_, Kind::integer});
    return fields;
  }

  void finish(Emitter& emitter) override {
    emit(emitter);
    pending_.clear();
    std::int64_t step = 0;
    for (const Times& times : std::exchange(alone_, {})) {
      const std::string number = to_text(++step);
      std::vector<Field> fields = {{"step", number, Kind::integer}};
      for (const Field& field : fields_of(times.parts)) fields.push_back(field);
      emitter.record(fields, times.prefix, times.line);
    }
  }

 private:
  struct Stored {
    std::string key, value;
    Kind kind;
  };

  /// The times of a step in a log without its number: since release 0.18 or so the step line is only printed if the
  /// logger's level is lowered, but the times are printed.
  struct Times {
    std::vector<Stored> parts;
    std::string prefix;
    std::int64_t line;
  };
  static constexpr std::size_t kMostAlone = 100'000;

  static bool starts_word(std::string_view text, std::size_t at) { return at == 0 || !is_key(text[at - 1]); }

  static std::vector<Field> fields_of(const std::vector<Stored>& stored) {
    std::vector<Field> fields;
    for (const Stored& one : stored) fields.push_back({one.key, one.value, one.kind});
    return fields;
  }

  /// Hands on the record that is being put together.
  void emit(Emitter& emitter) {
    if (open_.empty()) return;
    given_ = std::exchange(open_, {});
    emitter.record(fields_of(given_), open_prefix_, open_line_);
  }

  void open(const Line& line, std::string_view prefix, std::string_view step, Emitter& emitter) {
    steps_told_ = true;
    pending_.clear();
    alone_.clear();
    // The throughput line does not say its rank.
    const std::string rank = rank_of(prefix), open_rank = rank_of(open_prefix_);
    if (!open_.empty() && open_.front().value == step && (rank == open_rank || rank.empty() || open_rank.empty())) {
      if (open_rank.empty()) open_prefix_ = prefix;
      return;
    }
    emit(emitter);
    open_line_ = line.number;
    open_prefix_ = prefix;
    add("step", value_of(step));
  }

  void add(std::string_view key, Token value) {
    const bool known = std::ranges::any_of(open_, [&](const Stored& s) { return s.key == key; });
    if (!known) open_.push_back({std::string(key), std::string(value.text), value.kind});
  }

  Verdict read_step(const Line& line, std::size_t at, Emitter& emitter) {
    std::string_view rest = line.text.substr(at);
    skip(rest, "step=");
    const Token step = take_number(rest);
    if (step.kind != Kind::integer) return {false, "malformed DeepSpeed step line: no step number"};
    std::vector<std::pair<std::string_view, Token>> found;
    std::string fault;
    while (skip(rest, ", ")) {
      const std::string_view key = take_key(rest);
      if (key.empty() || !skip(rest, "=")) break;
      const bool list = skip(rest, "[");
      if (key == "mom") {  // pairs of betas, or momenta
        rest.remove_prefix(std::min(rest.size(), rest.find(']')));
        continue;
      }
      const Token value = take_number(rest);
      if (value.text.empty()) {
        fault = "malformed DeepSpeed step line: no number after '" + std::string(key) + "='";
        break;
      }
      if (!line.ended && rest.empty()) {
        fault = "malformed DeepSpeed step line: the log ends within the value of '" + std::string(key) + "'";
        break;
      }
      found.emplace_back(key, value);
      if (!list && number_ends(rest)) continue;
      if (!list) {
        found.pop_back();
        fault = "malformed DeepSpeed step line: other text within '" + std::string(key) + "'";
        break;
      }
      for (int group = 1; skip(rest, ", "); ++group) {  // one learning rate per parameter group
        const Token more = take_number(rest);
        if (!more.text.empty() && key == "lr") groups_.emplace_back("learning_rate." + std::to_string(group), more);
      }
      if (!skip(rest, "]")) {
        found.pop_back();
        groups_.clear();
        fault = "malformed DeepSpeed step line: '" + std::string(key) + "=[' is not closed";
        break;
      }
    }
    if (found.empty()) return {false, fault.empty() ? "malformed DeepSpeed step line: it ends early" : fault};
    if (step.text == "0") {  // printed when the engine starts: no step was done
      for (const auto& [key, value] : found) {
        if (key == "lr") emitter.attribute("initial_learning_rate", value.text);
      }
      groups_.clear();
      return {true, fault};
    }
    open(line, line.text.substr(0, at), step.text, emitter);
    for (const auto& [key, value] : found) add(key == "lr" ? "learning_rate" : key, value);
    for (const auto& [key, value] : groups_) add(key, value);
    groups_.clear();
    return {true, fault};
  }

  Verdict read_throughput(const Line& line, Emitter& emitter) {
    const std::string_view text = line.text;
    std::size_t at = text.find("epoch=");
    std::string_view epoch, micro, step;
    std::string_view rest;
    if (at != std::string_view::npos) {
      rest = text.substr(at);
      skip(rest, "epoch=");
      epoch = take_number(rest).text;
      if (skip(rest, "/micro_step=")) micro = take_number(rest).text;
      if (skip(rest, "/global_step=")) step = take_number(rest).text;
    } else if (at = text.find("] "), at = text.rfind("] ", text.find("SamplesPerSec=")); at != std::string_view::npos) {
      rest = text.substr(at += 2);  // before 0.7: "[timer.py:157:stop] 0/10, SamplesPerSec=..."
      skip(rest, "epoch=");
      epoch = take_number(rest).text;
      if (skip(rest, "/")) step = take_number(rest).text;
    }
    if (step.empty() || !rest.starts_with(", ")) return {false, "malformed DeepSpeed throughput line: no step number"};
    open(line, text.substr(0, at), step, emitter);
    if (value_of(epoch).kind == Kind::integer) add("epoch", value_of(epoch));
    if (!micro.empty()) add("micro_step", value_of(micro));
    while (skip(rest, ", ")) {
      const std::string_view key = take_key(rest);
      if (key.empty() || !skip(rest, "=")) break;
      const Token value = take_number(rest);
      if (value.text.empty())
        return {true, "malformed DeepSpeed throughput line: no number after '" + std::string(key) + "='"};
      if (!line.ended && rest.empty())
        return {true,
                "malformed DeepSpeed throughput line: the log ends within the value of '" + std::string(key) + "'"};
      if (key == "MemAllocated" || key == "MaxMemAllocated") {
        const std::string bytes = bytes_of(value.text, take_key(rest));
        if (bytes.empty())
          return {true, "malformed DeepSpeed throughput line: no number of bytes as '" + std::string(key) + "'"};
        add(key == "MemAllocated" ? "alloc_mem" : "peak_mem", {bytes, Kind::integer});
      } else if (!number_ends(rest)) {
        return {true, "malformed DeepSpeed throughput line: other text within '" + std::string(key) + "'"};
      } else {
        add(key == "CurrSamplesPerSec"         ? "samples_per_second"
            : key == "RunningAvgSamplesPerSec" ? "mean_samples_per_second"
                                               : key,
            value);
      }
    }
    return {true};
  }

  Verdict read_heading(std::string_view text) {
    const std::size_t at = text.find(", Epoch ");
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + 8);
    evaluated_ = take_digits(text);
    return {!evaluated_.empty()};
  }

  /// "ppl: 2.1", "chosen: 0.1, rejected: -0.2, loss: 0.69": the line after the heading.
  Verdict read_evaluation(const Line& line, Emitter& emitter) {
    std::string_view rest = line.text;
    const std::string epoch = std::exchange(evaluated_, {});
    std::vector<Field> fields = {{"epoch", epoch, Kind::integer}};
    do {
      skip_blanks(rest);
      const std::string_view key = take_key(rest);
      skip(rest, " (higher is better) ");
      if (key.empty() || !skip(rest, ": ")) return {};
      const Token value = take_number(rest);
      if (value.text.empty() || (!rest.empty() && rest.front() != ',')) return {};
      if (!line.ended && rest.empty())
        return {false, "malformed evaluation line: the log ends within the value of '" + std::string(key) + "'"};
      static constexpr auto kNames = std::to_array<std::pair<std::string_view, std::string_view>>(
          {{"ppl", "valid_perplexity"}, {"loss", "valid_loss"}, {"acc", "valid_accuracy"}});
      const auto* const name = std::ranges::find_if(kNames, [&](const auto& n) { return n.first == key; });
      fields.push_back({name == kNames.end() ? key : name->second, value.text, value.kind});
    } while (skip(rest, ","));
    emit(emitter);
    emitter.record(fields, {}, line.number);
    return {true};
  }

  /// Times of the parts of a step, in s: of the open step; of the program's next record; if the whole log has neither,
  /// of the steps in order.
  Verdict read_breakdown(const Line& line, std::size_t at) {
    if (!open_.empty()) return read_times(line, at, open_);
    if (steps_told_) return {};
    std::vector<Stored> times;
    const Verdict verdict = read_times(line, at, times);
    if (times.empty()) return verdict;
    const auto known = [&](const Stored& one) {
      return std::ranges::any_of(pending_, [&](const Stored& p) { return p.key == one.key; });
    };
    if (std::ranges::any_of(times, known)) pending_.clear();
    pending_.insert(pending_.end(), times.begin(), times.end());
    pending_prefix_ = line.text.substr(0, at);
    const bool of_step = std::ranges::any_of(times, [](const Stored& one) { return one.key == "time.step"; });
    if (of_step && !others_ && alone_.size() < kMostAlone) alone_.push_back({pending_, pending_prefix_, line.number});
    return verdict;
  }

  static Verdict read_times(const Line& line, std::size_t at, std::vector<Stored>& into) {
    std::string_view rest = line.text.substr(at);
    skip(rest, "time (ms)");
    while (skip(rest, " | ")) {
      const std::string_view key = take_key(rest);
      if (key.empty() || !skip(rest, ": ")) break;
      const Token value = take_number(rest);
      if (value.text.empty() || (!line.ended && rest.empty()))
        return {true, "malformed DeepSpeed time line: no number after '" + std::string(key) + ":'"};
      if (!number_ends(rest))
        return {true, "malformed DeepSpeed time line: other text within '" + std::string(key) + "'"};
      const std::string name = "time." + std::string(key);
      const bool known = std::ranges::any_of(into, [&](const Stored& s) { return s.key == name; });
      if (!known) into.push_back({name, shifted(value.text, -3), Kind::real});
    }
    return {true};
  }

  /// Memory at some place of the program, outside of steps: the largest of each kind is an attribute.
  Verdict read_memory(std::string_view text, Emitter& emitter) {
    bool found = false;
    for (std::size_t kind = 0; kind < kMemory.size(); ++kind) {
      const std::size_t at = text.find(kMemory[kind].first);
      if (at == std::string_view::npos) continue;
      std::string_view rest = text.substr(at + kMemory[kind].first.size());
      skip_blanks(rest);
      const Token number = take_number(rest);
      skip_blanks(rest);
      const auto bytes = parse_int(bytes_of(number.text, take_key(rest)));
      if (!bytes)
        return {found, "malformed DeepSpeed memory line: no number of bytes after '" +
                           std::string(trimmed(kMemory[kind].first)) + "'"};
      found = true;
      if (*bytes <= memory_[kind]) continue;
      memory_[kind] = *bytes;
      emitter.attribute("memory." + std::string(kMemory[kind].second), to_text(*bytes), true);
    }
    return {found};
  }

  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kMemory = {
      {{"MA ", "alloc_mem"}, {"Max_MA ", "peak_mem"}, {" CA ", "reserved_mem"}, {"Max_CA ", "peak_reserved_mem"}}};
  std::array<std::int64_t, 4> memory_{-1, -1, -1, -1};
  std::vector<Stored> open_, given_;  // the record being put together, and the last one handed on
  std::string given_rank_;            // its rank
  std::vector<Stored> pending_;       // times of a step that the log does not name
  std::string pending_prefix_;
  std::vector<Times> alone_;  // all such times, while nothing else is known of the steps
  bool steps_told_ = false, others_ = false;
  std::string evaluated_;  // the epoch after which the next line is an evaluation
  std::string open_prefix_;
  std::int64_t open_line_ = 0;
  std::vector<std::pair<std::string, Token>> groups_;
};

}  // namespace

std::unique_ptr<Dialect> make_deepspeed() { return std::make_unique<DeepSpeed>(); }

}  // namespace zs::parse
