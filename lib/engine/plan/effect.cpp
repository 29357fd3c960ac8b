// SPDX-License-Identifier: Apache-2.0
#include "plan/effect.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "plan/cost.hpp"

namespace zs::plan {
namespace {

std::int64_t count(const Plan& plan, Kind kind) {
  return std::count_if(plan.ops.begin(), plan.ops.end(), [&](const Op& op) { return op.kind == kind; });
}

/// "name a -> b" for each number that changed, joined by commas.
class Changes {
 public:
  template <typename Value>
  void add(const char* name, const Value& before, const Value& after) {
    if (before == after) return;
    text_ += (text_.empty() ? "" : ", ") + std::string(name) + " " + text(before) + " -> " + text(after);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  static std::string text(std::int64_t value) { return zs::to_text(value); }
  static std::string text(const std::string& value) { return value; }
};

}  // namespace

std::string effect(const std::string& pass, const Plan& before, const Plan& after, const Budget& budget) {
  Changes changes;
  const auto compare = [&](const char* name, auto count_of) { changes.add(name, count_of(before), count_of(after)); };
  const auto compare_kinds = [&](const char* name, Kind kind) {
    compare(name, [kind](const Plan& plan) { return count(plan, kind); });
  };
  compare("collectives", collectives);
  compare("of them during computation", overlapped);
  compare("parameters gathered at one time", peak_gathered);
  compare_kinds("optimizer states moved out", Kind::store);
  compare_kinds("shards moved out", Kind::store_shard);
  compare_kinds("shards loaded", Kind::load_shard);
  compare_kinds("inputs moved out", Kind::store_input);
  if (before.ops == after.ops) return pass + ": changes nothing";
  std::string text = pass + ": " + (changes.text().empty() ? "other order" : changes.text());
  if (!budget.profile) return text;
  const CostModel cost(*budget.profile, {});
  Changes predicted;
  const Prediction then = cost.predict(before), now = cost.predict(after);
  const auto seconds = [](const Prediction& prediction) { return to_rounded_text(prediction.seconds, 4) + " s"; };
  predicted.add("step", seconds(then), seconds(now));
  predicted.add("peak", to_bytes_text(then.memory), to_bytes_text(now.memory));
  return text + (predicted.text().empty() ? "" : "; predicted " + predicted.text());
}

}  // namespace zs::plan
