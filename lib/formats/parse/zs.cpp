// SPDX-License-Identifier: Apache-2.0
// Facts that zs-train prints about its run, besides the metric lines:
//   run: KEY=VALUE
//   Summary: steps: 100 iteration_time: 0.12 peak_mem: 2345678901 ...
//   state_digest: 0123456789abcdef0123456789abcdef
#include <algorithm>

#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

class Zs : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    std::string_view text = trimmed(line.text);
    if (const std::size_t at = text.find("]: "); text.starts_with('[') && at != std::string_view::npos) {
      text.remove_prefix(at + 3);  // "[rank0]: " of a launcher
    }
    if (skip(text, "run: ")) return read_run(text, line, emitter);
    if (skip(text, "state_digest:")) return read_digest(trimmed(text), emitter);
    if (skip(text, "Summary: ")) return read_summary(text, line, emitter);
    return {};
  }

 private:
  static Verdict read_run(std::string_view text, const Line& line, Emitter& emitter) {
    const std::string_view key = take_key(text);
    if (key.empty() || !skip(text, "=")) return {};
    if (!line.ended) return {false, "malformed run line: the log ends within the value of '" + std::string(key) + "'"};
    emitter.attribute(key, text, true);
    return {true};
  }

  static Verdict read_digest(std::string_view text, Emitter& emitter) {
    const bool whole = text.size() == 32 && std::ranges::all_of(text, is_hex);
    if (!whole) return {false, "malformed state_digest line: expected 32 hex digits"};
    emitter.attribute("state_digest", text, true);
    return {true};
  }

  static Verdict read_summary(std::string_view text, const Line& line, Emitter& emitter) {
    std::vector<Field> pairs;
    while (true) {
      skip_blanks(text);
      if (text.empty()) break;
      const std::string_view key = take_key(text);
      if (key.empty() || !skip(text, ":")) break;
      skip_blanks(text);
      const std::string_view value = text.substr(0, std::min(text.find(' '), text.size()));
      text.remove_prefix(value.size());
      pairs.push_back({key, value});
    }
    if (pairs.empty()) return {};
    const bool cut = !line.ended && text.empty();
    if (cut) pairs.pop_back();
    for (const Field& pair : pairs) emitter.attribute("summary." + std::string(pair.key), pair.value, true);
    if (cut) return {!pairs.empty(), "malformed summary line: the log ends within its last value"};
    emitter.attribute("exit_state", "finished");
    return {true};
  }
};

}  // namespace

std::unique_ptr<Dialect> make_zs() { return std::make_unique<Zs>(); }

}  // namespace zs::parse
