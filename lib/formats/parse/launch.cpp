// SPDX-License-Identifier: Apache-2.0
// Output of launch scripts and argparse before training:
//   NUM_NODES: 1 NGPUS_PER_NODE: 8 NUM_PROCESSES: 8
//   Logging to logs/debug_n0_Meta-Llama-3-8B_deepspeed_np8z3c1dc1E0b1seq512g4a1pALL.log
//   Namespace(model_name='gpt2', batch_size=1, compile=True, passes=None, ...)
#include <algorithm>

#include "base/words.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

/// Removes and gives one Python literal: up to a comma or the closing parenthesis outside of quotes and brackets.
/// Empty if the text ends before.
std::string_view take_literal(std::string_view& text) {
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == '\\')
        ++i;
      else if (c == quote)
        quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (depth > 0 && (c == ')' || c == ']' || c == '}')) {
      --depth;
    } else if (depth == 0 && (c == ',' || c == ')')) {
      const std::string_view literal = text.substr(0, i);
      text.remove_prefix(i);
      return literal;
    }
  }
  return {};
}

/// The pairs of a complete Namespace(...) at the start of `text` (after its parenthesis); empty if incomplete.
std::vector<Field> read_namespace(std::string_view text) {
  std::vector<Field> pairs;
  while (true) {
    const std::string_view key = take_key(text);
    if (key.empty() || !skip(text, "=")) return {};
    const std::string_view value = take_literal(text);
    if (value.empty()) return {};
    pairs.push_back({key, value});
    if (skip(text, ")")) return pairs;
    if (!skip(text, ", ")) return {};
  }
}

std::string_view unquoted(std::string_view literal) {
  const bool quoted =
      literal.size() >= 2 && (literal.front() == '\'' || literal.front() == '"') && literal.back() == literal.front();
  return quoted ? literal.substr(1, literal.size() - 2) : literal;
}

class Launch : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    std::string_view text = line.text;
    if (text.find("Namespace(") != std::string_view::npos) return read_namespaces(text, emitter);
    if (skip(text, "Logging to logs/")) return read_log_name(text, emitter);
    return read_header(text, emitter);
  }

 private:
  Verdict read_namespaces(std::string_view text, Emitter& emitter) {
    static constexpr std::string_view kHead = "Namespace(";
    bool found = false;
    for (std::size_t at = text.find(kHead); at != std::string_view::npos; at = text.find(kHead, at + 1)) {
      const auto pairs = read_namespace(text.substr(at + kHead.size()));
      if (pairs.empty()) continue;
      found = true;
      if (namespace_seen_) continue;  // every rank prints its own
      namespace_seen_ = true;
      for (const Field& pair : pairs) {
        // argparse's "backend" names the compiler in scripts that also have BACKEND, which names the engine.
        const bool compiler = pair.key == "backend" && pair.value == "'inductor'";
        emitter.attribute(compiler ? "compile_backend" : pair.key, unquoted(pair.value));
      }
    }
    return {found};
  }

  static Verdict read_header(std::string_view text, Emitter& emitter) {
    static const std::vector<std::string_view> kKeys = words_of(
        "BACKEND ZERO_STAGE NUM_PROCESSES NUM_NODES NGPUS_PER_NODE MODEL GRADIENT_ACCUMULATION_STEPS EXTRA_OPTS "
        "HOST_IP COMPILE");
    bool found = false;
    while (true) {
      skip_blanks(text);
      const std::string_view key = take_key(text);
      if (std::ranges::find(kKeys, key) == kKeys.end() || !skip(text, ":")) return {found};
      skip_blanks(text);
      const std::string_view value =
          key == "EXTRA_OPTS" ? trimmed(text) : text.substr(0, std::min(text.find(' '), text.size()));
      text.remove_prefix(std::min(text.size(), value.size()));
      found = true;
      emitter.attribute(key, value);
      if (key != "EXTRA_OPTS") continue;
      if (value.find("--deepcompile") != std::string_view::npos) emitter.attribute("deepcompile", "true");
      return {true};
    }
  }

  /// The launch script puts its settings into the log's name: ..._np8z3c1dc1E0b1seq512g4a1pALL.log
  static Verdict read_log_name(std::string_view text, Emitter& emitter) {
    const std::size_t at = text.rfind("_np");
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + 3);
    take_digits(text);
    if (!skip(text, "z")) return {};
    take_digits(text);
    if (!skip(text, "c")) return {};
    const std::string_view compile = take_digits(text);
    if (!skip(text, "dc")) return {};
    const std::string_view deep = take_digits(text);
    if (compile.empty() || deep.empty()) return {};
    emitter.attribute("compile", compile == "0" ? "false" : "true");
    emitter.attribute("deepcompile", deep == "0" ? "false" : "true");
    return {true};
  }

  bool namespace_seen_ = false;
};

}  // namespace

std::unique_ptr<Dialect> make_launch() { return std::make_unique<Launch>(); }

}  // namespace zs::parse
