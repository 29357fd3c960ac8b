// SPDX-License-Identifier: Apache-2.0
#include "probe/answer.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "compare/tensors.hpp"
#include "probe/account.hpp"
#include "probe/checks.hpp"
#include "probe/diagnosis.hpp"
#include "tensorfile/safetensors.hpp"

namespace zs::probe {
namespace {

using compare::Verdict;

std::vector<compare::Part> values_of(const Tensor& tensor, const std::string& name) {
  std::vector<compare::Part> parts;
  for (const Tensor::Piece& piece : tensor.pieces) {
    if (piece.values.empty() || !piece.contiguous || !std::filesystem::exists(piece.values)) return {};
    for (auto& [held, value] : tensorfile::read_safetensors(piece.values).tensors) {
      if (held == name) parts.push_back({name, piece.begin, std::move(value)});
    }
  }
  return parts;
}

std::string place_text(std::int64_t index, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; index /= std::max<std::int64_t>(1, shape[i]))
    at[i] = index % std::max<std::int64_t>(1, shape[i]);
  return tensorfile::to_text(at);
}

/// Words for the content of a place, and the stage of a step that makes it.
struct PlaceWords {
  std::string_view place, what, stage = "optimizer";
};
constexpr std::string_view kBeforeStep = "before the step", kAfterUpdate = "after the update, before the next forward";
constexpr PlaceWords kPlaceWords[] = {
    {"grad", "gradient", "backward, or the reduction of gradients"},
    {"direction", "direction"},
    {"local", "gradient of a micro-batch", "forward or backward"},
    {"rate", "optimizer's options", "learning rate schedule, or the optimizer's options"},
    {"batch", "samples", "data"},
    {"targets", "target tokens", "data"},
    {"output", "output", "forward"},
    {"buffer", "buffer", "forward"},
    {"copy", "copy", kAfterUpdate},
    {"begin", "parameter", kAfterUpdate},
    {"update", "update"},
    {"param", "parameter"},
    {"start", "parameter", kBeforeStep},
    {"parameter", "parameter", kBeforeStep},
    {"model", "parameter in 16 bits"},
    {"resume", "resume", kBeforeStep},
};

PlaceWords place_words(std::string_view place) {
  const auto* const row = std::ranges::find(kPlaceWords, place, &PlaceWords::place);
  return row == std::end(kPlaceWords) ? PlaceWords{place, ""} : *row;
}

std::string what(const std::string& place) {
  const std::string_view words = place_words(place).what;
  return words.empty() ? "optimizer state " + place.substr(place.find('.') + 1) : std::string(words);
}

probefile::Environment where(const Run& run) {
  const auto rank = run.heads.find(0);
  return rank == run.heads.end() ? probefile::Environment() : environment_of(rank->second.front());
}

std::string some(const std::vector<std::string>& texts) { return some_of(texts, 5, "; ", "; and "); }

/// A floor has steps of A's training, from different parameters. Returns a description of it.
std::string require_floor(const std::string& name_a, const Run& a, const std::string& name, const Run& floor) {
  std::size_t common = 0;
  for (const auto& [number, step] : a.steps) common += floor.steps.contains(number);
  if (common == 0) throw Error(name, 0, "has no step of " + name_a + ": a floor is the same training again");
  bool moved = false;
  for (const auto& [number, left] : a.starts) {
    const auto start = floor.starts.find(number);
    for (const auto& [tensor, value] : left.all()) {
      const Tensor* const other = start == floor.starts.end() ? nullptr : start->second.find(tensor);
      if (other && other->shape != value.shape)
        throw Error(name, 0, "has another " + tensor + " than " + name_a + ": a floor is the same training again");
      moved |= other && !other->same(value);
    }
  }
  if (!moved)
    throw Error(name, 0, "begins with the parameters of " + name_a + ": record a floor with ZS_PROBE_PERTURB=1");
  return name + ", over " + to_text(static_cast<std::int64_t>(common)) + " steps";
}

class Report {
 public:
  /// `floor`: its description, or "".
  Report(const std::string& name_a, const std::string& name_b, const Run& a, const Run& b,
         const compare::Tolerance& tolerance, std::string floor, Diagnosis found)
      : name_a_(name_a),
        name_b_(name_b),
        a_(a),
        b_(b),
        tolerance_(tolerance),
        found_(std::move(found)),
        floor_(std::move(floor)) {}

  /// Whether something differs in the steps after that one.
  bool apart(std::int64_t after) const { return apart(Account(a_, b_, found_, tolerance_, after)); }

  bool apart(const Account& account) const {
    const bool fails = !a_.faults.empty() || !b_.faults.empty() || copied();
    return found_.first || !account.different().empty() || !account.wild().empty() ||
           (found_.steps > 0 && (fails || found_.tensors == 0));
  }

  Answer answer() {
    const Account account(a_, b_, found_, tolerance_, -1);
    const bool is_apart = apart(account);
    if (found_.first && found_.first->relation.starts_with("no simple"))
      found_.first->relation += account.drawn_otherwise(found_.first->step);
    if (!tolerance_.exact() && account.tensors_differ()) tolerate();
    std::vector<std::string> failures;
    for (const auto& [name, run] : {std::pair{&name_a_, &a_}, {&name_b_, &b_}}) {
      for (const std::string& fault : run->faults) {
        const bool located = fault.starts_with(*name);
        failures.push_back(located ? fault : *name + ": " + fault);
      }
    }
    const std::int64_t alone = static_cast<std::int64_t>(a_.steps.size() + b_.steps.size()) - 2 * found_.steps;
    compare::Ledger ledger = account.ledger();
    if (tolerance_.exact() ? found_.first.has_value() : refused_) ledger.at_least(Verdict::different);
    if (unseen_ || !a_.unseen.empty() || !b_.unseen.empty()) ledger.at_least(Verdict::inconclusive);
    if (copied()) failures.push_back("both have a file of the recording " + a_.id + ": one is a copy of the other");
    if (found_.tensors == 0) failures.push_back("nothing in common: no tensor of any step that both have");
    if (!failures.empty()) ledger.at_least(Verdict::failed);
    const bool unlike = !a_.steps.empty() && !b_.steps.empty() && nothing_in_common();
    if (unlike) ledger.at_least(Verdict::not_comparable);
    const compare::Settled verdict = ledger.settle();
    add("verdict", std::string(compare::name(verdict)));
    const Account::Placed& earliest = account.earliest();
    if (unlike)
      add("headline", "two different models: no parameter of one has a name of the other");
    else if (found_.first)
      tell(*found_.first, earliest.step < found_.first->step ? earliest.text : "");
    else if (!earliest.text.empty())
      add("headline", earliest.text);
    if (found_.differing > 0) {
      const Finding* const first = found_.first ? &*found_.first : nullptr;
      add("kind", !first ? "rounding: the largest distance is " + to_rounded_text(found_.nearest, 2) +
                               " of its bound, " + found_.nearest_at + unseen_change()
                         : "more than rounding: step " + to_text(first->step) + ", " +
                               (first->parameter.empty() ? first->place : first->place + "/" + first->parameter) +
                               (first->bound > 0 ? ": " + to_rounded_text(first->distance / first->bound, 3) +
                                                       " times the bound of rounding"
                                                 : ""));
    }
    if (found_.differing == 0 && !account.rounded().empty())
      add("kind", "rounding: all tensors have the same bits, and these numbers differ: " + some(account.rounded()));
    if (!account.loss().empty()) add("loss", account.loss());
    if (!account.different().empty()) add("different", some(account.different()));
    if (!failures.empty()) add("failure", some(failures));
    if (!account.wild().empty()) add("failure", some(account.wild()));
    if (!account.open().empty()) add("not judged", some(account.open()));
    if (unseen_) add("note", "the tolerance is of elements, and no values were kept: it was not tried");
    if (!found_.left_out.empty()) add("left_out", found_.left_out);
    for (const auto& notes : {found_.notes, account.notes()}) {
      for (const std::string& note : notes) add("note", note);
    }
    if (!account.alone().empty()) add("missing", some(account.alone()));
    if (!found_.only.empty()) add("not compared", some(found_.only));
    for (const auto& [name, run] : {std::pair{"A", &a_}, {"B", &b_}}) {
      if (!run->unseen.empty()) add(std::string("not recorded in ") + name, some(run->unseen));
    }
    if (alone > 0) add("steps_alone", to_text(alone));
    add("steps_compared", to_text(found_.steps));
    add("tensors_compared", to_text(found_.tensors));
    add("elements_compared", to_text(found_.elements));
    if (found_.outputs > 0) add("outputs_compared", to_text(found_.outputs));
    add("tensors_differing", to_text(found_.differing));
    add("layout_a", called(a_));
    add("layout_b", called(b_));
    add("ranks_a", std::to_string(a_.ranks));
    add("ranks_b", std::to_string(b_.ranks));
    if (called(a_) == called(b_)) add("layouts", "the same on both sides, so this says nothing about other layouts");
    if (const auto moved = probefile::changes(where(a_), where(b_)); !moved.empty())
      add("environment", zs::joined(moved) + " (A -> B): other bits are expected");
    if (!floor_.empty()) add("floor", floor_);
    if (verdict == Verdict::different) {  // a check of one recording names the cause
      for (const auto& [name, run] : {std::pair{"A", &a_}, {"B", &b_}}) {
        if (const std::string broken = headline_of(*run); !broken.empty())
          add(std::string(name) + " alone", "INCONSISTENT: " + broken);
      }
    }
    return {verdict, std::move(lines_), found_.steps, is_apart, b_.ended(), std::move(found_.map)};
  }

 private:
  /// A key has one value, as JSON has: a second note follows the first.
  void add(const std::string& key, const std::string& value) {
    const auto known = std::find_if(lines_.begin(), lines_.end(), [&](const auto& line) { return line.first == key; });
    if (known != lines_.end())
      known->second += "; " + value;
    else
      lines_.emplace_back(key, value);
  }

  /// A clause on the changes that the bound of a 16-bit type hides.
  std::string unseen_change() const {
    if (found_.computed != "BF16" && found_.computed != "F16") return "";
    return std::string("; a change of the forward pass that is as small looks the same in ") +
           (found_.computed == "BF16" ? "bfloat16" : "float16") + ": record both in float32 to exclude one";
  }

  /// Whether a rank's file of one side is a file of the other.
  bool copied() const {
    std::set<std::string> known;
    for (const auto& [rank, heads] : a_.heads) {
      for (const probefile::HeadRow& head : heads) known.insert(head.id);
    }
    known.erase("");
    return std::ranges::any_of(b_.heads, [&](const auto& rank) {
      return std::ranges::any_of(rank.second, [&](const auto& head) { return known.contains(head.id); });
    });
  }

  /// Whether both have parameters, and no name of one is a name of the other.
  bool nothing_in_common() const {
    const auto names = [](const Run& run) {
      std::set<std::string> found;
      for (const auto& [name, tensor] : run.steps.begin()->second.tensors.all()) {
        if (name.starts_with("param/")) found.insert(name);
      }
      return found;
    };
    const std::set<std::string> left = names(a_), right = names(b_);
    return !left.empty() && !right.empty() &&
           std::ranges::none_of(left, [&](const std::string& name) { return right.contains(name); });
  }

  /// A tolerance that the user sets applies to elements.
  void tolerate() {
    for (const auto& [number, step] : a_.steps) {
      const auto other = b_.steps.find(number);
      if (other == b_.steps.end()) continue;
      for (const auto& [name, tensor] : step.tensors.all()) {
        const Tensor* const counterpart = other->second.tensors.find(name);
        if (!counterpart || tensor.same(*counterpart) || refused_) continue;
        const auto left = values_of(tensor, name), right = values_of(*counterpart, name);
        if (left.empty() || right.empty())
          unseen_ = true;
        else
          refused_ = compare::parts(left, right, name_a_, name_b_, tolerance_).refused > 0;
      }
    }
  }

  void tell(const Finding& finding, const std::string& earlier) {
    std::string said = "step " + to_text(finding.step) + ": ";
    if (finding.place == "rate" || finding.place == "batch" || finding.place == "targets" ||
        finding.place == "parameter") {
      said += finding.relation;
    } else {
      said += what(finding.place) + " of " + finding.parameter;
      if (finding.tensors.size() > 1)
        said += " and " + to_text(static_cast<std::int64_t>(finding.tensors.size()) - 1) + " more of " +
                to_text(static_cast<std::int64_t>(finding.total));
      said += ": " + finding.relation;
    }
    add("headline", earlier.empty() ? said : earlier);
    add("step", to_text(finding.step));
    add("what", what(finding.place));
    if (!finding.parameter.empty()) add("parameter", finding.parameter);
    add("stage", std::string(place_words(finding.place).stage));
    add("relation", finding.relation);
    add("residual", to_rounded_text(finding.residual, 2));
    add("distance", to_rounded_text(finding.distance, 3));
    add("bound", to_rounded_text(finding.bound, 3));
    if (!finding.tensors.empty()) {
      std::vector<std::string> names = finding.tensors;
      add("tensors", std::to_string(names.size()) + " of " + to_text(static_cast<std::int64_t>(finding.total)) + ": " +
                         some(names));
    }
    element(finding);
  }

  /// The element, if both kept values.
  void element(const Finding& finding) {
    const auto left = a_.steps.find(finding.step), right = b_.steps.find(finding.step);
    if (left == a_.steps.end() || right == b_.steps.end() || finding.parameter.empty()) return;
    const std::string place = finding.place == "update" ? "param" : finding.place;
    const std::string name = place + "/" + finding.parameter;
    const Tensor *a = left->second.tensors.find(name), *b = right->second.tensors.find(name);
    if (!a || !b) return;
    add("norm_a", to_text(std::sqrt(a->squares)));
    add("norm_b", to_text(std::sqrt(b->squares)));
    if (a->total != b->total || a->dtype != b->dtype) {
      add("tensors", name + " has " + to_text(a->total) + " elements of " + a->dtype + " in A, " + to_text(b->total) +
                         " of " + b->dtype + " in B");
      return;
    }
    const auto mine = values_of(*a, name), theirs = values_of(*b, name);
    if (mine.empty() || theirs.empty()) return;
    const compare::Tensors found = compare::parts(mine, theirs, name_a_, name_b_, {});
    if (!found.first) return;
    add("index", to_text(found.first->index));
    add("place", place_text(found.first->index, a->shape));
    add("value_a", found.first->a);
    add("value_a_hex", found.first->a_hex);
    add("value_b", found.first->b);
    add("value_b_hex", found.first->b_hex);
    add("elements", to_text(found.differing) + " of " + to_text(found.elements) + " differ, at most by " +
                        compare::ulp_text(found.largest.ulp) + " ulp");
  }

  std::string name_a_, name_b_;
  const Run &a_, &b_;
  compare::Tolerance tolerance_;
  Diagnosis found_;
  std::string floor_;
  std::vector<std::pair<std::string, std::string>> lines_;
  bool refused_ = false, unseen_ = false;
};

std::optional<Run> read_floor(const std::string& floor, std::int64_t after = 0) {
  return floor.empty() ? std::nullopt : std::optional(probefile::read(floor, after));
}

}  // namespace

std::string words_of(const std::string& place) {
  const std::string kind = place.substr(0, place.find('/'));
  const bool is_place = kind != place && (!place_words(kind).what.empty() || kind.starts_with("state."));
  return is_place ? what(kind) + " of " + place.substr(kind.size() + 1) : place;
}

std::string called(const Run& run) {
  std::string text = run.layout.empty() ? "plain" : run.layout;
  text += ", " + std::to_string(run.ranks) + (run.ranks == 1 ? " rank" : " ranks");
  std::string axes;
  for (const auto& [name, size] : run.axes) {
    if (size > 1 && !(name == "data" && size == run.ranks))
      axes += (axes.empty() ? " (" : ", ") + name + " " + to_text(size);
  }
  text += (axes.empty() ? "" : axes + ")") + ", torch " + run.torch;
  return run.framework.empty() ? text : text + ", " + run.framework.substr(0, run.framework.find_last_not_of(' ') + 1);
}

std::string Answer::sentence() const {
  if (verdict == Verdict::exact)
    return "all bits of " + line({"tensors_compared"}) + " tensors are the same, over " + to_text(steps) + " steps";
  const std::string why = line({"headline", "failure", "missing", "not judged", "loss", "kind", "not compared"});
  return why.empty() ? line({"verdict"}) : why;
}

Answer compare(const std::string& a, const std::string& b, const compare::Tolerance& tolerance, std::int64_t after,
               const std::string& floor) {
  Run left = probefile::read(a, after), right = probefile::read(b, after);
  std::optional<Run> moved = read_floor(floor, after);
  probefile::align(left, right);
  std::string said;
  if (moved) {
    probefile::align(left, *moved);
    said = require_floor(a, left, floor, *moved);
  }
  return Report(a, b, left, right, tolerance, said, diagnose(left, right, moved ? &*moved : nullptr)).answer();
}

Live::Live(std::string a, std::string b, const compare::Tolerance& tolerance, std::string floor)
    : name_a_(std::move(a)),
      name_b_(std::move(b)),
      a_(probefile::read(name_a_)),
      floor_(read_floor(floor)),
      growing_(name_b_),
      tolerance_(tolerance) {
  if (floor_) {
    probefile::align(a_, *floor_);
    said_ = require_floor(name_a_, a_, floor, *floor_);
  }
}

Live::Seen Live::grow() {
  b_ = &growing_.read();
  probefile::align(a_, *b_);
  if (floor_) probefile::align(a_, *floor_);
  if (!diagnosing_) diagnosing_.emplace(a_, *b_, floor_ ? &*floor_ : nullptr);
  const std::int64_t before = diagnosing_->last();
  found_ = diagnosing_->next();
  return {found_.steps, Report(name_a_, name_b_, a_, *b_, tolerance_, said_, found_).apart(before), b_->ended()};
}

Answer Live::answer() {
  growing_.settle();
  return Report(name_a_, name_b_, a_, *b_, tolerance_, said_, found_).answer();
}

}  // namespace zs::probe
