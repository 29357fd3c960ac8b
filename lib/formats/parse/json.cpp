// SPDX-License-Identifier: Apache-2.0
// JSON lines: wandb-history.jsonl, and any flat object with a step and another number.
//   {"train/loss": 2.0751, "train/global_step": 40, "_step": 3, "_runtime": 61.4, "_timestamp": 1750132261.4}
#include <algorithm>

#include "parse/flat_json.hpp"
#include "parse/names.hpp"

namespace zs::parse {
namespace {

class JsonLines : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    const std::size_t at = line.text.find("{\"");
    if (at == std::string_view::npos || line.text.find_first_not_of(" \t") < at) {
      const bool prefixed = at != std::string_view::npos && !rank_of(line.text.substr(0, at)).empty();
      if (!prefixed) return {};
    }
    const bool whole = json_.read(line.text.substr(at));
    const auto& fields = json_.fields();
    const bool step = std::any_of(fields.begin(), fields.end(), [](const Field& f) {
      return column_named(f.key).column == "step" && f.kind != Kind::word;
    });
    if (!whole) {
      const bool like_one = line.text.find("step\":") != std::string_view::npos;
      if (!step && !seen_ && !like_one) return {};  // some other text in braces
      return {false, "malformed JSON line: " + json_.fault()};
    }
    const auto numbers =
        std::count_if(fields.begin(), fields.end(), [](const Field& f) { return f.kind != Kind::word; });
    if (!step || numbers < 2) return {};
    seen_ = true;
    if (const std::string_view twice = repeated_key(); !twice.empty())
      return {false, "malformed JSON line: key '" + std::string(twice) + "' stands twice"};
    emitter.record(fields, line.text.substr(0, at), line.number);
    return {true};
  }

 private:
  /// A repeated key, whose value is ambiguous.
  std::string_view repeated_key() {
    keys_.clear();
    for (const Field& field : json_.fields()) keys_.push_back(field.key);
    std::sort(keys_.begin(), keys_.end());
    const auto twice = std::adjacent_find(keys_.begin(), keys_.end());
    return twice == keys_.end() ? std::string_view() : *twice;
  }

  FlatJson json_;
  std::vector<std::string_view> keys_;
  bool seen_ = false;
};

}  // namespace

std::unique_ptr<Dialect> make_json() { return std::make_unique<JsonLines>(); }

}  // namespace zs::parse
