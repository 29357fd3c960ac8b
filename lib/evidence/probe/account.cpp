// SPDX-License-Identifier: Apache-2.0
#include "probe/account.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "base/number.hpp"
#include "probe/matching.hpp"
#include "probe/options.hpp"

namespace zs::probe {

using compare::Holder;
using compare::Verdict;
namespace rule = probefile::rule;

namespace {

const char* const kLayout = "another layout records other things";
const char* const kStride = "its stride leaves the step out";
const char* const kPartial = "the row of the end has the parameters alone";
const char* const kCut = "the batch is cut otherwise, and the sum is compared";

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }
bool near(double a, double b, double by) { return std::fabs(a - b) <= by * std::max(std::fabs(a), std::fabs(b)); }
std::string pair_text(double a, double b) { return to_text(a) + " and " + to_text(b); }

/// Equality alone.
Account::Outcome equal(const std::string& a, const std::string& b) {
  if (a == b) return {};
  return {Verdict::different, b + " for " + a};
}

/// What two sides may have otherwise without another result, so far: it is not compared by a value.
Account::Outcome unjudged(bool same, const std::string& text) {
  return same ? Account::Outcome() : Account::Outcome{Verdict::inconclusive, text};
}

}  // namespace

/// A step, or a start, that both sides have.
struct Account::Scene {
  Account& to;
  const Run &a, &b;
  const Diagnosis& found;
  const compare::Tolerance& tolerance;
  std::string prefix;  ///< "step 3: "
  const Step *left = nullptr, *right = nullptr;
  bool alike = false, cut = false, by_samples = false, partial = false, last = false;

  /// Enters what two maps hold: `judge` compares a pair, `excuse` is the reason why one side may lack a thing, or null.
  template <class T, class Judge, class Excuse>
  void each(const std::map<std::string, T>& mine, const std::map<std::string, T>& theirs, Judge judge, Excuse excuse) {
    for (const auto& [name, value] : mine) {
      to.add(Holder::a, prefix + name);
      const auto other = theirs.find(name);
      if (other == theirs.end())
        to.alone(Holder::a, prefix + name, excuse(name));
      else
        to.enter(prefix + name, judge(name, value, other->second));
    }
    for (const auto& [name, value] : theirs) {
      to.add(Holder::b, prefix + name);
      if (!mine.contains(name)) to.alone(Holder::b, prefix + name, excuse(name));
    }
  }
  const char* layout() const { return partial ? kPartial : alike ? nullptr : kLayout; }
  const char* micro_batch() const { return layout() ? layout() : cut ? nullptr : kCut; }

  /// A number that the step makes: a loss, a norm.
  Outcome number(const std::string& name, double x, double y) {
    if (!std::isfinite(x) && !std::isfinite(y)) return {Verdict::failed, name + " is " + pair_text(x, y)};
    if (same_bits(x, y)) return {};
    const auto bound = found.judged.find(prefix + "number");
    const double most = bound == found.judged.end() ? 0 : bound->second;
    if (tolerance.exact() ? near(x, y, most) : tolerance.accepts(x, y))
      return {tolerance.exact() ? Verdict::rounding : Verdict::within, ""};
    return {Verdict::different, name + ": " + pair_text(x, y)};
  }

  // ---- the fields of a tensor
  Outcome field(rule::Row, const Tensor&, const Tensor&, const std::string&) const { return {}; }   // its name
  Outcome field(rule::Part, const Tensor&, const Tensor&, const std::string&) const { return {}; }  // of its rank
  Outcome field(rule::Form, const Tensor& x, const Tensor& y, const std::string& name) const {
    if (x.dtype == y.dtype && x.of == y.of && x.shape == y.shape && x.held == y.held) return {};
    const bool own = !alike && !name.starts_with("grad/") && !name.starts_with("param/") && x.shape == y.shape;
    if (own && found.judged.contains(prefix + name)) return {Verdict::rounding, ""};
    return {own ? Verdict::inconclusive : Verdict::different, name + " has another type or shape"};
  }
  Outcome field(rule::Bits, const Tensor& x, const Tensor& y, const std::string& name) const {
    if (x.digest == y.digest) return {};
    if (!tolerance.exact()) return {Verdict::within, ""};  // which the elements decide
    if (found.judged.contains(prefix + name)) return {Verdict::rounding, ""};
    return {Verdict::inconclusive, name + " differs, and nothing recorded shows by how much it may"};
  }
  Outcome field(rule::Squares, const Tensor& x, const Tensor& y, const std::string& name) const {
    if (!std::isfinite(x.squares) && !std::isfinite(y.squares)) return {Verdict::failed, name};
    if (std::isfinite(x.squares) != std::isfinite(y.squares)) return {Verdict::different, name + " is finite on one side"};
    const bool same = x.digest == y.digest && x.dtype == y.dtype;
    const auto bound = found.judged.find(prefix + name);
    const double most = same ? (alike ? 0 : 1e-6) : bound == found.judged.end() ? 1 : 4 * bound->second + 1e-6;
    if (same_bits(x.squares, y.squares) || near(std::sqrt(x.squares), std::sqrt(y.squares), most)) return {};
    return {same ? Verdict::failed : Verdict::different, name + " has another norm than its values tell"};
  }
  Outcome field(rule::Sums, const Tensor& x, const Tensor& y, const std::string& name) const {
    if (x.digest != y.digest || x.dtype != y.dtype || x.sketch.size() != y.sketch.size()) return {};
    for (std::size_t i = 0; i < x.sketch.size(); ++i) {
      const double most = alike ? 0 : 1e-9 * std::sqrt(x.squares * static_cast<double>(x.of));
      if (!same_bits(x.sketch[i], y.sketch[i]) && !(std::fabs(x.sketch[i] - y.sketch[i]) <= most) &&
          std::isfinite(x.squares))
        return {Verdict::failed, name + " has equal values and another sketch"};
    }
    return {};
  }
  Outcome tensor(const std::string& name, const Tensor& x, const Tensor& y) const {
    Outcome worst;
    probefile::each(probefile::kTensor, [&](const auto& row) {
      Outcome one = field(row.rule, x, y, name);
      if (one.verdict > worst.verdict) worst = std::move(one);
    });
    if (x.digest != y.digest) to.tensors_differ_ = true;
    return worst;
  }
  static std::map<std::string, const Tensor*> listed(const Tensors& tensors, const std::string& before = "") {
    std::map<std::string, const Tensor*> found;
    for (const auto& [name, tensor] : tensors.all()) found.emplace(before + name, &tensor);
    return found;
  }
  template <class Excuse>
  void tensors(const std::map<std::string, const Tensor*>& mine, const std::map<std::string, const Tensor*>& theirs,
               Excuse excuse) {
    each(mine, theirs, [&](const std::string& name, const Tensor* x, const Tensor* y) { return tensor(name, *x, *y); },
         excuse);
  }

  // ---- the fields of a step
  void enter(rule::Row) {}     // the number of the step, by which the two are paired
  void enter(rule::Places) {}  // whose lack of others is excused
  void enter(rule::File) {}    // its name: the values are those of the tensors
  void enter(rule::Unseen) {}  // of the run
  void enter(rule::Tensors) {
    const auto frozen = [&](const std::string& name) {
      const std::string parameter = name.substr(name.find('/') + 1);
      return a.frozen.contains(parameter) && b.frozen.contains(parameter);
    };
    tensors(listed(left->tensors), listed(right->tensors), [&](const std::string& name) -> const char* {
      if (layout() == kPartial) return kPartial;
      if (frozen(name)) return kLayout;  // some layouts hold what others leave out
      if (alike) return nullptr;
      if (name.starts_with("grad/")) {
        const std::string direction = "direction/" + name.substr(5);
        return left->tensors.find(direction) || right->tensors.find(direction) ? kLayout : nullptr;
      }
      return name.starts_with("param/") ? nullptr : kLayout;
    });
  }
  void enter(rule::Contributions) {
    std::map<std::string, const Tensor*> mine, theirs;
    std::set<const Contribution*> paired;
    const auto list = [](std::map<std::string, const Tensor*>& into, const Contribution& one, int by, int micro) {
      into.merge(listed(one.tensors, "micro-batch " + std::to_string(by) + "/" + std::to_string(micro) + ": "));
    };
    auto pairs = matched(*left, *right);
    if (pairs.size() != left->locals.size() && !alike) pairs = along(*left, *right);
    for (const auto& [x, y] : pairs) {
      list(mine, *x, x->by, x->micro), list(theirs, *y, x->by, x->micro);
      paired.insert(x), paired.insert(y);
    }
    for (const auto& [key, one] : left->locals) {
      if (!paired.contains(&one)) list(mine, one, key.first, key.second);
    }
    for (const auto& [key, one] : right->locals) {
      if (!paired.contains(&one)) list(theirs, one, key.first + (1 << 20), key.second);
    }
    each(mine, theirs,
         [&](const std::string& name, const Tensor* x, const Tensor* y) {
           Outcome found_here = tensor(name, *x, *y);  // of another layout: divided by another number
           if (micro_batch() && found_here.verdict != Verdict::failed) return Outcome{std::min(found_here.verdict, Verdict::rounding), ""};
           return found_here;
         },
         [&](const std::string&) { return micro_batch(); });
  }
  void enter(rule::Outputs) {
    each(listed(left->outputs, "output "), listed(right->outputs, "output "),
         [&](const std::string& name, const Tensor* x, const Tensor* y) {
           const std::string module = name.substr(7, name.rfind('/') - 7);
           const bool parted = a.parted.contains(module) || b.parted.contains(module);
           if (parted && !alike) return Outcome{Verdict::rounding, ""};  // parts that only their ranks can join
           return tensor(name, *x, *y);
         },
         [&](const std::string&) { return micro_batch(); });
  }
  void enter(rule::Loss) {
    const auto listed_losses = [](const Step& step) {
      std::map<std::string, double> found;
      for (const auto& [rank, row] : step.ranks) {
        if (row.loss) found["loss of rank " + std::to_string(rank)] = *row.loss;
      }
      return found;
    };
    const auto batch = [](const Step& step) {
      std::map<int, std::multiset<std::string>> found;
      for (const auto& [rank, row] : step.ranks) {
        for (const auto& micro : row.batch) found[rank].insert(micro.begin(), micro.end());
      }
      return found;
    };
    const bool same_samples = batch(*left) == batch(*right);
    each(listed_losses(*left), listed_losses(*right),
         [&](const std::string& name, double x, double y) {
           if (!alike && std::isfinite(x) && std::isfinite(y)) return Outcome{same_bits(x, y) ? Verdict::exact : Verdict::rounding, ""};
           Outcome one = number(name, x, y);
           if (one.verdict == Verdict::different && !same_samples && !by_samples) one.verdict = Verdict::inconclusive;
           if (one.verdict == Verdict::different && to.loss_.empty())
             to.loss_ = prefix.substr(0, prefix.size() - 2) + ", " + name.substr(8) + ": " + pair_text(x, y);
           return one;
         },
         [&](const std::string&) { return layout(); });
  }
  /// A value of each micro-batch, by its name.
  template <class T, class Value>
  std::map<std::string, T> of_micro_batches(const Step& step, const std::string& what, Value value) const {
    std::map<std::string, T> found;
    for (const auto& [key, name] : names_of_micro_batches(step, by_samples)) {
      const auto row = step.ranks.find(key.first);
      const std::optional<T> one = value(row->second, static_cast<std::size_t>(key.second));
      if (one) found[what + " of micro-batch " + name] = *one;
    }
    return found;
  }
  void enter(rule::Losses) {
    const auto value = [](const StepRow& row, std::size_t micro) {
      return micro < row.losses.size() ? std::optional<double>(row.losses[micro].value) : std::nullopt;
    };
    each(of_micro_batches<double>(*left, "loss", value), of_micro_batches<double>(*right, "loss", value),
         [&](const std::string& name, double x, double y) {
           if (micro_batch() && std::isfinite(x) && std::isfinite(y))
             return Outcome{same_bits(x, y) ? Verdict::exact : Verdict::rounding, ""};  // divided by another number
           return number(name, x, y);
         },
         [&](const std::string&) { return micro_batch(); });
  }
  void enter(rule::Targets) {
    const auto value = [](const StepRow& row, std::size_t micro) -> std::optional<std::string> {
      if (micro >= row.targets.size() || !row.targets[micro]) return std::nullopt;
      return to_text(*row.targets[micro]);
    };
    each(of_micro_batches<std::string>(*left, "target tokens", value),
         of_micro_batches<std::string>(*right, "target tokens", value),
         [&](const std::string& name, const std::string& x, const std::string& y) {
           Outcome one = equal(x, y);
           if (one.verdict == Verdict::exact) return one;
           if (micro_batch()) return Outcome{Verdict::rounding, ""};
           return Outcome{Verdict::different, name + ": " + one.text};
         },
         [&](const std::string&) { return micro_batch(); });
  }
  void enter(rule::Samples) {
    const auto all = [&](const Step& step) {
      std::multiset<std::string> found_samples;
      for (const auto& [rank, row] : step.ranks) {
        for (const auto& micro : row.batch) found_samples.insert(micro.begin(), micro.end());
      }
      if (alike) return found_samples;
      const std::set<std::string> once(found_samples.begin(), found_samples.end());  // several ranks may share a sample
      return std::multiset<std::string>(once.begin(), once.end());
    };
    std::map<std::string, std::multiset<std::string>> mine, theirs;
    if (auto samples = all(*left); !samples.empty()) mine["samples"] = std::move(samples);
    if (auto samples = all(*right); !samples.empty()) theirs["samples"] = std::move(samples);
    each(mine, theirs,
         [&](const std::string&, const auto& x, const auto& y) {
           const bool common = std::any_of(x.begin(), x.end(), [&](const std::string& one) { return y.contains(one); });
           if (!alike && !common) return Outcome{Verdict::rounding, ""};  // made in another type
           return unjudged(x == y, "the samples are others");
         },
         [&](const std::string&) { return layout(); });
  }
  void enter(rule::Scalars) {
    const auto listed_scalars = [&](const Step& step) {
      std::map<std::string, double> found_scalars;
      if (!alike) return step.scalars;
      for (const auto& [rank, row] : step.ranks) {
        for (const auto& [key, value] : row.scalars) found_scalars[key + " of rank " + std::to_string(rank)] = value;
      }
      return found_scalars;
    };
    each(listed_scalars(*left), listed_scalars(*right),
         [&](const std::string& name, double x, double y) {
           if (name.starts_with("norm")) return number(name, x, y);
           if (!cut || !alike) {
             if (!name.starts_with("clip")) return Outcome{same_bits(x, y) ? Verdict::exact : Verdict::rounding, ""};
           }
           if (!std::isfinite(x) || !std::isfinite(y)) return Outcome{Verdict::failed, name + " is " + pair_text(x, y)};
           if (same_bits(x, y)) return Outcome{};
           return Outcome{near(x, y, 1e-6) ? Verdict::rounding : Verdict::different, name + ": " + pair_text(x, y)};
         },
         [&](const std::string&) { return layout(); });
  }
  void enter(rule::Groups) {
    const auto listed_groups = [](const Step& step) {
      std::map<std::string, const Group*> found_groups;
      for (const auto& [name, group] : groups_of(step)) found_groups["options of " + name] = group;
      for (std::size_t i = 0; i < step.groups.size(); ++i) {
        if (step.groups[i].params.empty()) found_groups["options of group " + std::to_string(i)] = &step.groups[i];
      }
      return found_groups;
    };
    each(listed_groups(*left), listed_groups(*right),
         [&](const std::string& name, const Group* x, const Group* y) {
           Outcome worst;
           for (const OptionApart& option : options_apart(*x, *y)) {
             if (option.verdict == Verdict::inconclusive && !alike) continue;  // an option of its layout
             if (option.verdict > worst.verdict) worst = {option.verdict, name + ": " + option.key + " is " + option.text};
           }
           return worst;
         },
         [&](const std::string&) { return layout(); });
  }
  void enter(rule::Counters) {
    const auto listed_counters = [](const Step& step) {
      std::map<std::string, std::string> found_counters;
      for (const auto& [name, steps] : counters(step)) found_counters["steps of " + name] = steps;
      return found_counters;
    };
    each(listed_counters(*left), listed_counters(*right),
         [&](const std::string& name, const std::string& x, const std::string& y) {
           Outcome one = equal(x, y);
           if (!one.text.empty()) one.text = name + ": " + one.text;
           return one;
         },
         [&](const std::string&) { return layout(); });
  }
  void enter(rule::Generators) {
    const auto listed_generators = [](const Step& step) {
      std::map<std::string, std::string> found_generators;
      for (const auto& [rank, row] : step.ranks) {
        for (const auto& [name, digest] : row.generators) {
          if (name != "python")  // which each process seeds by itself
            found_generators["generator " + name + " of rank " + std::to_string(rank)] = digest;
        }
      }
      return found_generators;
    };
    each(listed_generators(*left), listed_generators(*right),
         [&](const std::string& name, const std::string& x, const std::string& y) {
           if (x == y || !alike) return Outcome{x == y ? Verdict::exact : Verdict::rounding, ""};
           if (!last) return Outcome{Verdict::rounding, ""};  // the next step, which draws from it, is compared
           return Outcome{Verdict::inconclusive, name + " is in another state"};
         },
         [&](const std::string&) { return layout(); });
  }
  void enter(rule::Computed) {
    const std::map<std::string, std::string> mine{{"type of the forward pass", left->computed}},
        theirs{{"type of the forward pass", right->computed}};
    bool differ = false;
    for (const auto& [name, tensor] : left->tensors.all()) {
      const Tensor* const other = right->tensors.find(name);
      differ |= other && tensor.digest != other->digest;
    }
    each(mine, theirs,
         [&](const std::string& name, const std::string& x, const std::string& y) {
           if (x == y || partial) return Outcome{};
           if (differ || !alike) return Outcome{Verdict::rounding, ""};  // the coarser of the two is the bound
           return Outcome{Verdict::inconclusive, name + " is '" + y + "' for '" + x + "'"};
         },
         [&](const std::string&) { return layout(); });
  }
};

void Account::add(Holder holder, const std::string& thing) { (holder == Holder::a ? held_a_ : held_b_).add(thing); }

void Account::enter(const std::string& thing, const Outcome& outcome) {
  compared_.emplace_back(thing, outcome.verdict);
  const std::string text = thing.substr(0, thing.find(": ") + 2) + outcome.text;
  if (outcome.verdict == Verdict::different) different_.push_back(text);
  if (outcome.verdict == Verdict::failed) wild_.push_back(text);
  if (outcome.verdict == Verdict::inconclusive) open_.push_back(text);
}

void Account::alone(Holder holder, const std::string& thing, const char* excuse) {
  if (excuse)
    excused_.emplace_back(holder, thing);
  else
    alone_.push_back(thing + " is only in " + (holder == Holder::a ? "A" : "B"));
}

Account::Account(const Run& a, const Run& b, const Diagnosis& found, const compare::Tolerance& tolerance,
                 std::int64_t after) {
  Scene scene{*this, a, b, found, tolerance, "", nullptr, nullptr, probe::alike(a, b)};
  const auto never = [](const std::string&) -> const char* { return nullptr; };
  const auto layout = [&](const std::string&) { return scene.alike ? nullptr : kLayout; };

  // ---- the first lines
  const auto enter_head = [&](rule::Names, const char* what) {
    std::map<std::string, std::string> mine, theirs;
    const auto list = [&](const Run& run, std::map<std::string, std::string>& into) {
      if (std::string(what) == "frozen") {
        for (const std::string& name : run.frozen) into["frozen " + name] = "";
      } else {
        for (const auto& [name, others] : run.ties) {
          for (const std::string& other : others) into["tie of " + name + " with " + other] = "";
        }
      }
    };
    list(a, mine), list(b, theirs);
    scene.each(mine, theirs, [](const auto&, const auto&, const auto&) { return Outcome{}; }, layout);
  };
  struct Told {  // rules whose fields the reader checks or the answer tells
    void operator()(rule::Row, const char*) const {}
    void operator()(rule::Rank, const char*) const {}
    void operator()(rule::Copy, const char*) const {}
    void operator()(rule::Version, const char*) const {}
    void operator()(rule::Layout, const char*) const {}
    void operator()(rule::Unseen, const char*) const {}
  };
  struct Head : Told, decltype(enter_head) {
    using Told::operator();
    using decltype(enter_head)::operator();
  };
  const Head head{Told{}, enter_head};
  probefile::each(probefile::kHead, [&](const auto& field) { head(field.rule, field.name); });

  // ---- the starts
  struct Starts {
    void operator()(rule::Row) const {}
    void operator()(rule::Counted) const {
      const auto mine = a->counted.find(number), theirs = b->counted.find(number);
      std::map<std::string, std::string> x, y;
      if (mine != a->counted.end()) x["steps counted"] = to_text(mine->second);
      if (theirs != b->counted.end()) y["steps counted"] = to_text(theirs->second);
      scene->each(x, y, [](const auto&, const std::string& p, const std::string& q) { return equal(p, q); },
                  [&](const auto&) { return derived ? kLayout : scene->layout(); });
    }
    void operator()(rule::Tensors) const {
      const auto kept = [](const Tensors& tensors) {
        std::map<std::string, const Tensor*> found;
        for (const auto& [name, tensor] : tensors.all()) {
          if (name.starts_with("param/") || name.starts_with("state.") || name.starts_with("buffer/"))
            found.emplace(name, &tensor);
        }
        return found;
      };
      scene->tensors(kept(*left), kept(*right), [&](const std::string& name) -> const char* {
        if (derived && name.starts_with("buffer/")) return kPartial;  // a step has those that have changed
        return scene->alike || name.starts_with("param/") ? nullptr : kLayout;
      });
    }
    Scene* scene;
    const Run *a, *b;
    std::int64_t number;
    const Tensors *left, *right;
    bool derived;  ///< a side's is what its last step left
  };
  std::set<std::int64_t> begun;
  for (const Run* run : {&a, &b}) {
    for (const auto& [number, tensors] : run->starts) begun.insert(number);
  }
  for (const std::int64_t number : begun) {
    if (number <= after && after >= 0) continue;
    const auto of = [&](const Run& run) -> std::pair<const Tensors*, bool> {
      if (const auto start = run.starts.find(number); start != run.starts.end()) return {&start->second, false};
      const auto step = run.steps.find(number);
      return {step == run.steps.end() || step->second.partial() ? nullptr : &step->second.tensors, true};
    };
    const auto [left, from_step_a] = of(a);
    const auto [right, from_step_b] = of(b);
    scene.prefix = start_thing(number, "");
    scene.partial = false;
    if (!left || !right) {
      const Holder holder = left ? Holder::a : Holder::b;
      add(holder, scene.prefix);
      alone(holder, scene.prefix, (left ? b : a).leaves_out(number) ? kStride : nullptr);
      continue;
    }
    const Starts starts{&scene, &a, &b, number, left, right, from_step_a || from_step_b};
    probefile::each(probefile::kStart, [&](const auto& field) { starts(field.rule); });
  }

  // ---- the steps
  std::set<std::int64_t> steps;
  std::int64_t last = -1;
  for (const auto& [number, step] : a.steps) {
    steps.insert(number);
    if (!step.partial() && b.steps.contains(number)) last = number;
  }
  for (const auto& [number, step] : b.steps) steps.insert(number);
  for (auto at = steps.upper_bound(after); at != steps.end(); ++at) {
    const auto left = a.steps.find(*at), right = b.steps.find(*at);
    if (left == a.steps.end() || right == b.steps.end()) {
      const bool in_a = left != a.steps.end();
      const std::string name = thing(*at, "the step");
      add(in_a ? Holder::a : Holder::b, name);
      alone(in_a ? Holder::a : Holder::b, name, (in_a ? b : a).leaves_out(*at) ? kStride : nullptr);
      continue;
    }
    scene.prefix = thing(*at, "");
    scene.left = &left->second, scene.right = &right->second;
    scene.partial = scene.left->partial() || scene.right->partial();
    scene.cut = cut_alike(*scene.left, *scene.right);
    scene.by_samples = same_micro_batches(*scene.left, *scene.right);
    scene.last = *at == last;
    probefile::each(probefile::kStep, [&](const auto& field) { scene.enter(field.rule); });
  }

  // ---- the end
  struct Ends {
    void operator()(rule::End) const {}  // which the reader checks; the last step is compared below
    void operator()(rule::Rank) const {}
    void operator()(rule::Unseen) const {}
  };
  probefile::each(probefile::kEnd, [](const auto& field) { Ends()(field.rule); });
  if (after >= 0) return;
  scene.prefix = "end: ";
  std::map<std::string, std::string> mine, theirs;
  if (a.ended()) mine["steps made"] = to_text(a.end);
  if (b.ended()) theirs["steps made"] = to_text(b.end);
  scene.each(mine, theirs,
             [&](const std::string&, const std::string& x, const std::string& y) {
               return unjudged(x == y, "A made " + x + " steps, B " + y);
             },
             never);
}

compare::Ledger Account::ledger() const {
  compare::Ledger made(held_a_, held_b_);
  for (const auto& [thing, verdict] : compared_) made.compared(thing, verdict);
  for (const auto& [holder, thing] : excused_) made.excuse(holder, thing);
  return made;
}

}  // namespace zs::probe
