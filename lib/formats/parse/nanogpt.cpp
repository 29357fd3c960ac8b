// SPDX-License-Identifier: Apache-2.0
// nanoGPT:
//   iter 100: loss 2.1234, time 135.12ms, mfu 12.34%
//   step 250: train loss 2.4012, val loss 2.5031
// The second is an evaluation of both splits, at the start of that step.
#include <algorithm>

#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

class NanoGpt : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    if (const std::size_t at = find_head(line.text, "iter "); at != std::string_view::npos)
      return read_iter(line, at, emitter);
    if (const std::size_t at = find_head(line.text, "step "); at != std::string_view::npos)
      return read_evaluation(line, at, emitter);
    return {};
  }

 private:
  /// The position of `head`, a number and ": ".
  static std::size_t find_head(std::string_view text, std::string_view head) {
    for (std::size_t at = text.find(head); at != std::string_view::npos; at = text.find(head, at + 1)) {
      if (at > 0 && is_key(text[at - 1])) continue;
      std::string_view rest = text.substr(at + head.size());
      if (take_number(rest).kind == Kind::integer && rest.starts_with(": ")) return at;
      // "iter 1,000: loss": a metric line, but of which step?
      rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of("0123456789,._")));
      if (rest.starts_with(": loss ") || rest.starts_with(": train loss ")) return at;
    }
    return std::string_view::npos;
  }

  static Verdict read_iter(const Line& line, std::size_t at, Emitter& emitter) {
    std::string_view rest = line.text.substr(at + 5);
    const Token step = take_number(rest);
    if (!skip(rest, ": ")) return {false, "malformed iter line: no step number after 'iter'"};
    if (!skip(rest, "loss ")) return {};
    const Token loss = take_number(rest);
    if (loss.text.empty()) return {false, "malformed iter line: no number after 'loss'"};
    if (!line.ended && rest.empty()) return {false, "malformed iter line: the log ends within the value of 'loss'"};
    if (!number_ends(rest)) return {false, "malformed iter line: other text within 'loss'"};
    std::vector<Field> fields = {{"step", step.text, step.kind}, {"loss", loss.text, loss.kind}};
    std::string fault, time;
    if (skip(rest, ", time ")) {
      const Token value = take_number(rest);
      if (!value.text.empty() && skip(rest, "ms")) {
        time = shifted(value.text, -3);
        fields.push_back({"iteration_time", time, Kind::real});
      } else {
        fault = "malformed iter line: no time in ms after 'time'";
      }
    }
    if (skip(rest, ", mfu ")) {
      const Token value = take_number(rest);
      if (!value.text.empty() && skip(rest, "%"))
        fields.push_back({"mfu", value.text, value.kind});
      else
        fault = "malformed iter line: no percentage after 'mfu'";
    } else if (!rest.empty() && rest.front() == ',') {
      fault = "malformed iter line: it ends in '" + std::string(rest.substr(0, 20)) + "'";
    }
    emitter.record(fields, line.text.substr(0, at), line.number);
    return {true, fault};
  }

  static Verdict read_evaluation(const Line& line, std::size_t at, Emitter& emitter) {
    std::string_view rest = line.text.substr(at + 5);
    const Token step = take_number(rest);
    if (!skip(rest, ": ")) return {false, "malformed evaluation line: no step number after 'step'"};
    if (!skip(rest, "train loss ")) return {};
    const Token train = take_number(rest);
    if (!skip(rest, ", val loss ")) {
      const bool other = rest.starts_with(" (took ") || rest.starts_with(" |");  // of llm.c
      return other ? Verdict{} : Verdict{false, "malformed evaluation line: no 'val loss' after 'train loss'"};
    }
    const Token valid = take_number(rest);
    if (train.text.empty() || valid.text.empty()) return {false, "malformed evaluation line: a loss is not a number"};
    if (!number_ends(rest)) return {false, "malformed evaluation line: other text within 'val loss'"};
    if (!line.ended && rest.empty())
      return {false, "malformed evaluation line: the log ends within the value of 'val loss'"};
    emitter.record({{"step", step.text, step.kind},
                    {"train_split_loss", train.text, train.kind},
                    {"valid_loss", valid.text, valid.kind}},
                   line.text.substr(0, at), line.number);
    return {true};
  }
};

}  // namespace

std::unique_ptr<Dialect> make_nanogpt() { return std::make_unique<NanoGpt>(); }

}  // namespace zs::parse
