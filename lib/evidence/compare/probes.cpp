// SPDX-License-Identifier: Apache-2.0
#include "compare/probes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "compare/elements.hpp"
#include "compare/ledger.hpp"
#include "compare/probe_file.hpp"
#include "compare/rounding.hpp"
#include "tensorfile/safetensors.hpp"

namespace zs::compare {
namespace {

namespace fs = std::filesystem;

std::string place_text(std::int64_t index, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; index /= std::max<std::int64_t>(1, shape[i]))
    at[i] = index % std::max<std::int64_t>(1, shape[i]);
  return tensorfile::to_text(at);
}

bool is_gradient(const std::string& name) { return name.starts_with("grad/"); }

/// The first few, and how many more.
std::string some(const std::vector<std::string>& texts) {
  constexpr std::size_t kTold = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kTold, texts.size()); ++i) text += (i ? "; " : "") + texts[i];
  return texts.size() > kTold ? text + "; and " + std::to_string(texts.size() - kTold) + " more" : text;
}

/// The kept values of a side's tensors; each file is opened once.
class KeptValues {
 public:
  /// Empty if some parts were not kept.
  Values of(const std::string& name, const Probed& tensor) {
    Values values;
    double squares = 0;
    for (const Probed::Piece& piece : tensor.pieces) {
      if (piece.values.empty() || !fs::exists(piece.values)) return {};
      const auto& file = open(piece.values);
      const auto found = file.find(name);
      if (found == file.end()) throw Error(piece.values, 0, "has no values of " + name);
      if (found->second.count() != piece.count) throw Error(piece.values, 0, "has another number of values of " + name);
      values.push_back({name, piece.begin, found->second});
      for (const double value : reals(found->second)) squares += value * value;
    }
    if (!(std::fabs(squares - tensor.squares) <= 1e-6 * tensor.squares) && std::isfinite(tensor.squares))
      throw Error(tensor.pieces.front().values, 0, "has values of " + name + " that are not the recorded ones");
    return values;
  }

 private:
  using File = std::map<std::string, tensorfile::Tensor>;
  std::map<std::string, File> files_;

  const File& open(const std::string& path) {
    const auto [at, is_new] = files_.try_emplace(path);
    if (is_new) {
      for (auto& [name, tensor] : tensorfile::read_safetensors(path).tensors)
        at->second.emplace(name, std::move(tensor));
    }
    return at->second;
  }
};

/// Something that differs, and how far.
struct Found {
  std::string name;  ///< "target tokens", "loss", or of a tensor
  Apart apart;       ///< with a tolerance: rounding is accepted, unknown not seen, beyond refused
  const Probed *a = nullptr, *b = nullptr;
  std::string text{};  ///< for what is no tensor
};

class Comparison {
 public:
  Comparison(const std::string& a, const std::string& b, const Tolerance& tolerance, std::int64_t after)
      : name_a_(a),
        name_b_(b),
        a_(read_probe(a, after)),
        b_(read_probe(b, after)),
        tolerance_(tolerance),
        ledger_(a_.holdings, b_.holdings) {}

  ProbeAnswer run() {
    health();
    std::set<std::int64_t> all;
    for (const ProbedRun* side : {&a_, &b_}) {
      for (const auto& [step, held] : side->steps) all.insert(step);
    }
    for (const std::int64_t step : all) {
      const auto left = a_.steps.find(step), right = b_.steps.find(step);
      if (left == a_.steps.end())
        alone(step, right->second, Holder::b, a_);
      else if (right == b_.steps.end())
        alone(step, left->second, Holder::a, b_);
      else
        one_step(step, left->second, right->second);
    }
    return answer();
  }

 private:
  using Lines = std::vector<std::pair<std::string, std::string>>;

  std::string name_a_, name_b_;
  ProbedRun a_, b_;
  Tolerance tolerance_;
  Ledger ledger_;
  Rounding rounding_;
  KeptValues kept_a_, kept_b_;
  std::array<std::optional<Lines>, 3> headlines_;  // the first step with a difference so far apart
  std::string beyond_, unknown_, loss_, loss_beyond_;
  std::vector<std::string> failures_, wild_, unlike_, doubts_;
  std::int64_t steps_ = 0, alone_ = 0, tensors_ = 0, elements_ = 0, differing_ = 0, losses_ = 0, other_targets_ = 0;

  /// A step of one side. The other's stride must leave it out.
  void alone(std::int64_t step, const ProbedStep& held, Holder holder, const ProbedRun& other) {
    ++alone_;
    if (!other.leaves_out(step)) {
      const bool in_a = holder == Holder::a;
      failures_.push_back("step " + to_text(step) + " is in " + (in_a ? name_a_ : name_b_) + " and missing in " +
                          (in_a ? name_b_ : name_a_));
      return;
    }
    ledger_.excuse(holder, "steps");
    if (!held.losses.empty()) ledger_.excuse(holder, "loss");
    for (const auto& [name, tensor] : held.tensors) ledger_.excuse(holder, name);
  }

  void one_step(std::int64_t step, const ProbedStep& left, const ProbedStep& right) {
    ++steps_;
    ledger_.compared("steps", Verdict::exact);
    if (a_.torch != b_.torch)
      rounding_.computed_in(Rounding::bound(left.computed) > Rounding::bound(right.computed) ? left.computed
                                                                                             : right.computed);
    std::vector<Found> found;
    targets(step, left, right, found);
    losses(step, left, right, found);
    // The one that close() writes has parameters alone.
    if (b_.is_close(step) && left.has_gradients()) excuse_gradients(left, Holder::a);
    if (a_.is_close(step) && right.has_gradients()) excuse_gradients(right, Holder::b);
    for (const auto& [name, tensor] : left.tensors) {
      if (const Probed* const other = right.find(name)) one_tensor(step, name, tensor, *other, left, right, found);
    }
    for (const Apart apart : {Apart::rounding, Apart::unknown, Apart::beyond}) {
      auto& headline = headlines_[static_cast<std::size_t>(apart)];
      if (!headline) headline = head(step, found, apart);
    }
  }

  void excuse_gradients(const ProbedStep& held, Holder holder) {
    if (!held.losses.empty()) ledger_.excuse(holder, "loss");
    for (const auto& [name, tensor] : held.tensors) {
      if (is_gradient(name)) ledger_.excuse(holder, name);
    }
  }

  /// The verdict for a difference.
  Verdict outcome(Apart apart) const {
    if (apart == Apart::beyond) return Verdict::different;
    if (apart == Apart::unknown) return Verdict::inconclusive;
    return tolerance_.exact() ? Verdict::rounding : Verdict::within;
  }

  /// Other numbers are of other samples, or of other labels of them.
  void targets(std::int64_t step, const ProbedStep& left, const ProbedStep& right, std::vector<Found>& found) {
    if (!left.targets || !right.targets || *left.targets == *right.targets) return;
    const std::string text =
        "step " + to_text(step) + ", target tokens: " + to_text(*left.targets) + " and " + to_text(*right.targets);
    if (beyond_.empty()) beyond_ = text;
    ledger_.at_least(Verdict::different);
    ++other_targets_;
    found.push_back({"target tokens", Apart::beyond, nullptr, nullptr, text});
  }

  void losses(std::int64_t step, const ProbedStep& left, const ProbedStep& right, std::vector<Found>& found) {
    if (left.losses.empty() || right.losses.empty()) return;
    Verdict worst = Verdict::exact;
    const auto pair = [&](const std::string& who, double a, double b, bool by_rank) {
      const std::string text = "step " + to_text(step) + ", " + who + ": " + to_text(a) + " and " + to_text(b);
      if (!std::isfinite(a) || !std::isfinite(b)) {
        wild_.push_back("the loss of " + text);
        worst = std::max(worst, Verdict::failed);
        return;
      }
      if (std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b)) return;
      const double own = static_cast<double>(left.losses.size() + right.losses.size()) * 0x1p-53;  // the rounding of
                                                                                                   // the means here
      if (!by_rank && std::fabs(a - b) <= own * std::max(std::fabs(a), std::fabs(b))) return;
      Apart apart = rounding_.loss(a, b).apart;
      if (apart == Apart::beyond && !by_rank) {
        doubts_.push_back("the mean losses of " + text + ", over samples that are not known to be the same");
        worst = std::max(worst, Verdict::inconclusive);
        return;
      }
      if (apart == Apart::beyond && beyond_.empty()) beyond_ = "the losses of " + text;
      if (!tolerance_.exact()) apart = tolerance_.accepts(a, b) ? Apart::rounding : Apart::beyond;
      worst = std::max(worst, outcome(apart));
      ++losses_;
      if (loss_.empty()) loss_ = text;
      if (apart == Apart::beyond && loss_beyond_.empty()) loss_beyond_ = text;
      if (by_rank) found.push_back({"loss", apart, nullptr, nullptr, text});
    };
    if (a_.ranks == b_.ranks) {
      for (const auto& [rank, loss] : left.losses) {
        const auto other = right.losses.find(rank);
        if (other != right.losses.end()) pair("rank " + std::to_string(rank), loss, other->second, true);
      }
      const auto has = [](const std::map<int, double>& in, const std::map<int, double>& of) {
        return std::all_of(of.begin(), of.end(), [&](const auto& loss) { return in.contains(loss.first); });
      };
      if (!has(left.losses, right.losses) || !has(right.losses, left.losses)) {
        doubts_.push_back("step " + to_text(step) + ": the loss of a rank is missing on one side");
        worst = std::max(worst, Verdict::inconclusive);
      }
    } else {  // other ranks than B's have other samples; the mean is over the same ones
      const auto mean = [](const std::map<int, double>& losses) {
        double sum = 0;
        for (const auto& [rank, loss] : losses) sum += loss;
        return sum / static_cast<double>(losses.size());
      };
      pair("mean over ranks", mean(left.losses), mean(right.losses), false);
    }
    ledger_.compared("loss", worst);
  }

  void one_tensor(std::int64_t step, const std::string& name, const Probed& a, const Probed& b, const ProbedStep& left,
                  const ProbedStep& right, std::vector<Found>& found) {
    ++tensors_;
    elements_ += a.held;
    const std::string what = "step " + to_text(step) + ": " + name;
    if (!std::isfinite(a.squares) || !std::isfinite(b.squares)) {
      const bool both = !std::isfinite(a.squares) && !std::isfinite(b.squares);
      wild_.push_back(what + (both ? " in both" : " in " + (std::isfinite(b.squares) ? name_a_ : name_b_)));
      ledger_.compared(name, Verdict::failed);
      differing_ += !a.same(b);
      if (!a.same(b)) found.push_back({name, Apart::beyond, &a, &b});
      return;
    }
    if (a.same(b)) return ledger_.compared(name, Verdict::exact);
    ++differing_;
    if (a.dtype != b.dtype || a.shape != b.shape) {
      unlike_.push_back(what + " is " + a.dtype + " " + tensorfile::to_text(a.shape) + " in " + name_a_ + ", " +
                        b.dtype + " " + tensorfile::to_text(b.shape) + " in " + name_b_);
      ledger_.compared(name, Verdict::different);
      found.push_back({name, Apart::beyond, &a, &b});
      return;
    }
    const Values values_a = kept_a_.of(name, a), values_b = kept_b_.of(name, b);
    const Judged judged = is_gradient(name)
                              ? rounding_.gradient(a, b, values_a, values_b)
                              : rounding_.parameter(name, a, b, values_a, values_b, gradient_of(name, left, right));
    std::string& told = judged.apart == Apart::beyond ? beyond_ : unknown_;
    if (judged.apart != Apart::rounding && told.empty())
      told = "step " + to_text(step) + ", " + name + ": " + judged.why;
    const Apart apart = tolerance_.exact() ? judged.apart : tolerated(a, b, values_a, values_b);
    ledger_.compared(name, outcome(apart));
    found.push_back({name, apart, &a, &b});
  }

  /// The values of the gradient that a parameter was updated with, of the side that kept them.
  Values gradient_of(const std::string& parameter, const ProbedStep& left, const ProbedStep& right) {
    const std::string name = "grad/" + parameter.substr(parameter.find('/') + 1);
    const Probed *const a = left.find(name), *const b = right.find(name);
    Values values = a ? kept_a_.of(name, *a) : Values{};
    return values.empty() && b ? kept_b_.of(name, *b) : values;
  }

  Apart tolerated(const Probed& a, const Probed& b, const Values& values_a, const Values& values_b) const {
    if (values_a.empty() || values_b.empty())
      return tolerance_.accepts(a.norm(), b.norm()) ? Apart::unknown : Apart::beyond;
    return parts(values_a, values_b, name_a_, name_b_, tolerance_).refused > 0 ? Apart::beyond : Apart::rounding;
  }

  /// The first thing of a step, in the order of a step, that is so far apart or further.
  std::optional<Lines> head(std::int64_t step, const std::vector<Found>& found, Apart apart) {
    std::vector<const Found*> all;
    std::vector<std::string> gradients;  // in the order of forward
    for (const Found& one : found) {
      if (one.apart < apart) continue;
      all.push_back(&one);
      if (is_gradient(one.name)) gradients.push_back(one.name.substr(5));
    }
    if (all.empty()) return {};
    const Found& first = *all.front();
    Lines lines;
    const auto add = [&](const std::string& key, const std::string& value) { lines.emplace_back(key, value); };
    add("step", to_text(step));
    const bool loss = first.name == "loss", tensor = first.a != nullptr;
    add("what", !tensor ? first.name : is_gradient(first.name) ? "gradient" : "parameter");
    if (tensor)
      place(first, lines);
    else
      add("values", first.text.substr(first.text.find(", ") + 2));
    add("stage", loss                ? "forward"
                 : !tensor           ? "data"
                 : gradients.empty() ? "optimizer"
                                     : "backward, or the reduction of gradients");
    // Backward goes from the last unit to the first, and takes a difference with it.
    if (tensor && gradients.size() > 1)
      add("backward",
          "came to " + gradients.back() + " first, of " + std::to_string(gradients.size()) + " gradients that differ");
    return lines;
  }

  void place(const Found& found, Lines& lines) {
    const auto add = [&](const std::string& key, const std::string& value) { lines.emplace_back(key, value); };
    const std::string& name = found.name;
    const Probed &a = *found.a, &b = *found.b;
    add("parameter", name.substr(name.find('/') + 1));
    if (a.dtype != b.dtype || a.shape != b.shape) return;  // reported separately
    add("norm_a", to_text(a.norm()));
    add("norm_b", to_text(b.norm()));
    const Values left = kept_a_.of(name, a), right = kept_b_.of(name, b);
    if (left.empty() || right.empty()) {
      add("element", "not known: zs_probe kept no values of this step on both sides (values=True)");
      return;
    }
    const Tensors beyond = parts(left, right, name_a_, name_b_, tolerance_),
                  bits = parts(left, right, name_a_, name_b_, {});
    const std::optional<Element>& first = beyond.first ? beyond.first : bits.first;
    if (!first) return;
    add("index", to_text(first->index));
    add("place", place_text(first->index, a.shape));
    add("value_a", first->a);
    add("value_a_hex", first->a_hex);
    add("value_b", first->b);
    add("value_b_hex", first->b_hex);
    add("elements", to_text(bits.differing) + " of " + to_text(bits.elements) + " differ, at most by " +
                        ulp_text(bits.largest.ulp) + " ulp");
  }

  /// Checks the recordings themselves, regardless of their content.
  void health() {
    for (const auto& [name, run] : {std::pair{&name_a_, &a_}, {&name_b_, &b_}}) {
      for (const std::string& fault : run->faults) failures_.push_back(fault);
    }
    if (a_.end >= 0 && b_.end >= 0 && a_.end != b_.end)
      failures_.push_back(name_a_ + " ends after " + to_text(a_.end) + " steps, " + name_b_ + " after " +
                          to_text(b_.end));
    for (std::size_t rank = 0; rank < std::min(a_.ids.size(), b_.ids.size()); ++rank) {
      if (a_.ids[rank].empty() || a_.ids[rank] != b_.ids[rank]) continue;
      failures_.push_back("both have the recording " + a_.ids[rank] + " of rank " + std::to_string(rank) +
                          ": one is a copy of the other");
      break;
    }
    if (a_.ids.front().empty() && b_.ids.front().empty() && same_file()) {
      doubts_.push_back("both files of rank 0 are the same to the last byte and name no recording: one may be a copy");
      ledger_.at_least(Verdict::inconclusive);
    }
  }

  bool same_file() const {
    const auto content = [](const std::string& folder) { return Input(folder + "/rank-0.jsonl").read_all(); };
    return content(name_a_) == content(name_b_);
  }

  /// Adds what one side lacks, or what was not compared.
  std::vector<std::string> missing() const {
    std::vector<std::string> all;
    for (const Ledger::Open& open : ledger_.open()) {
      const std::string& where = open.a < open.b ? name_a_ : name_b_;
      if (std::min(open.a, open.b) == 0)
        all.push_back(open.thing + " is missing in " + where);
      else
        all.push_back(open.thing + " is in " + name_a_ + " at " + to_text(open.a) + " steps and in " + name_b_ +
                      " at " + to_text(open.b) + ", compared at " + to_text(open.compared));
    }
    return all;
  }

  std::string kind() const {
    if (!unlike_.empty()) return "other tensors: " + some(unlike_);
    if (!beyond_.empty()) return "more than rounding: " + beyond_;
    if (!unknown_.empty()) return "rounding, as far as the norms tell; values=True shows more: " + unknown_;
    return "rounding: every difference is one that another order of the same sums leaves";
  }

  ProbeAnswer answer() {
    if (tensors_ == 0) failures_.insert(failures_.begin(), "nothing in common: no tensor of any step that both have");
    if (!failures_.empty()) ledger_.at_least(Verdict::failed);
    ProbeAnswer answer{ledger_.settle(), {}};
    const auto add = [&](const std::string& key, const std::string& value) { answer.lines.emplace_back(key, value); };
    add("verdict", std::string(name(answer.verdict)));
    for (std::size_t apart = headlines_.size(); apart-- > 0;) {
      if (!headlines_[apart]) continue;
      answer.lines.insert(answer.lines.end(), headlines_[apart]->begin(), headlines_[apart]->end());
      break;
    }
    if (differing_ + losses_ + other_targets_ > 0 && (wild_.empty() || !beyond_.empty() || !unlike_.empty()))
      add("kind", kind());
    if (losses_ > 0) add("loss", loss_beyond_.empty() ? loss_ : loss_beyond_);
    if (!failures_.empty()) add("failure", some(failures_));
    if (!wild_.empty()) add("not finite", some(wild_));
    if (!doubts_.empty()) add("note", some(doubts_));
    if (!tolerance_.exact() && !unknown_.empty())
      add("tolerance", "was tried on norms alone where no values were kept");
    if (const auto open = missing(); !open.empty()) add("missing", some(open));
    if (alone_ > 0) add("steps_alone", to_text(alone_));
    add("steps_compared", to_text(steps_));
    add("tensors_compared", to_text(tensors_));
    add("elements_compared", to_text(elements_));
    add("tensors_differing", to_text(differing_));
    add("ranks_a", std::to_string(a_.ranks));
    add("ranks_b", std::to_string(b_.ranks));
    const std::string left = a_.layout(), right = b_.layout();
    add("layout_a", left);
    add("layout_b", right);
    if (left == right) add("layouts", "the same on both sides: nothing is said of another layout");
    if (a_.torch != b_.torch) add("torch", a_.torch + " in A, " + b_.torch + " in B: other bits are expected");
    return answer;
  }
};

}  // namespace

ProbeAnswer compare_probes(const std::string& a, const std::string& b, const Tolerance& tolerance, std::int64_t after) {
  return Comparison(a, b, tolerance, after).run();
}

}  // namespace zs::compare
