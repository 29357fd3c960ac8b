// SPDX-License-Identifier: Apache-2.0
#include "probe/account.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "probe/options.hpp"

namespace zs::probe {
namespace {

constexpr std::size_t kSums = 128;

void put(Tensors& tensors, const std::string& name, double value, double more = 0, const std::string& dtype = "F32") {
  Tensor& tensor = tensors.at(name);
  tensor.dtype = dtype, tensor.shape = {256}, tensor.total = tensor.held = 256;
  for (std::size_t i = 0; i < kSums; ++i)
    tensor.sketch.push_back(value * std::sin(1.0 + static_cast<double>(i)) +
                            more * std::cos(3.0 * static_cast<double>(i)));
  for (const double sum : tensor.sketch) tensor.squares += sum * sum;
  tensor.digest = std::hash<double>()(value) ^ (std::hash<double>()(more) << 1);
}

/// What one side has otherwise than the other.
struct Change {
  double gradient = 1, local = 1, state = 1, update = 1, noise = 0;
  std::string computed = "BF16";
};

/// A step of an optimizer with momentum, under autocast to bfloat16: two micro-batches, gradient, state, parameter.
Run training(const Change& change = {}) {
  Run run;
  run.ranks = 1, run.end = 1, run.layout = "plain";
  put(run.starts[0], "param/w", 0.5);
  Step& step = run.steps[1];
  StepRow row;
  row.step = 1, row.loss = probefile::Real{1.5}, row.computed = change.computed;
  row.groups = {{{{"lr", {{0.01}, ""}}, {"nesterov", {{}, "false"}}}, {"w"}, "SGD"}};
  row.counters = {{"1", {"w"}}};
  step.groups = row.groups, step.computed = change.computed;
  step.ranks[0] = row;
  for (const int micro : {0, 1}) {
    step.locals[{0, micro}].micro = micro;
    put(step.locals[{0, micro}].tensors, "w", change.local * 0.05 * (micro + 1));
  }
  put(step.tensors, "grad/w", change.gradient * change.local * 0.15, change.noise);
  put(step.tensors, "state.momentum/w", change.gradient * change.state * 0.15);
  put(step.tensors, "param/w", 0.5 - change.update * 0.01);
  return run;
}

struct Said {
  compare::Verdict verdict;
  Diagnosis found;
};

Said compared(const Run& a, const Run& b) {
  Diagnosis found = diagnose(a, b);
  const Account account(a, b, found, {}, -1);
  compare::Ledger ledger = account.ledger();
  if (found.first) ledger.at_least(compare::Verdict::different);
  return {ledger.settle(), std::move(found)};
}

}  // namespace

TEST_CASE("probe: a ledger of two equal recordings is exact; what one side lacks is not, whatever it is") {
  using compare::Verdict;
  const Run a = training();
  CHECK(compared(a, a).verdict == Verdict::exact);
  const auto lacks = [&](auto change) {
    Run b = a;
    change(b);
    return compared(a, b).verdict;
  };
  CHECK(lacks([](Run& b) { b.steps[1].ranks[0].loss.reset(); }) == Verdict::inconclusive);
  CHECK(lacks([](Run& b) { b.steps[1].locals.clear(); }) == Verdict::inconclusive);
  CHECK(lacks([](Run& b) { b.steps[1].ranks[0].counters.clear(); }) == Verdict::inconclusive);
  CHECK(lacks([](Run& b) { b.steps[1].ranks[0].groups.clear(), b.steps[1].groups.clear(); }) == Verdict::inconclusive);
  CHECK(lacks([](Run& b) { b.starts.clear(); }) == Verdict::inconclusive);
  CHECK(lacks([](Run& b) { b.frozen.insert("w"); }) == Verdict::inconclusive);
  CHECK(lacks([](Run& b) { b.end = -1; }) == Verdict::inconclusive);
  Run frozen = a;  // one optimizer has the frozen parameter, too
  frozen.frozen.insert("f");
  Run held = frozen;
  put(held.starts[0], "param/f", 2), put(held.steps[1].tensors, "param/f", 2);
  CHECK(compared(held, frozen).verdict == Verdict::exact);
  frozen.steps[1].tensors = held.steps[1].tensors;  // the other recorded it once
  CHECK(compared(held, frozen).verdict == Verdict::inconclusive);
  CHECK(lacks([](Run& b) { b.steps[1].ranks[0].scalars["norm"] = {1}; }) == Verdict::inconclusive);
  CHECK(lacks([](Run& b) { b.steps[1].ranks[0].generators["torch"] = "0"; }) == Verdict::inconclusive);
  CHECK(lacks([](Run& b) { b.steps[1].ranks[0].batch = {{"0"}}; }) == Verdict::inconclusive);
  CHECK(lacks([](Run& b) { b.steps[1].ranks[0].loss = probefile::Real{1.6}; }) == Verdict::different);
  CHECK(lacks([](Run& b) { b.steps[1].ranks[0].loss = probefile::Real{std::nan("")}; }) == Verdict::different);
  CHECK(lacks([](Run& b) { put(b.steps[1].outputs, "head/0", 1); }) == Verdict::inconclusive);
  // A part that is missing is no difference of the trainings.
  Run torn = a;
  for (const auto& name : {"grad/w", "param/w"}) {
    torn.steps[1].tensors.at(name).held = 0, torn.steps[1].tensors.at(name).digest = 0;
    torn.steps[1].tensors.at(name).sketch.assign(kSums, 0);
  }
  const Said said = compared(a, torn);
  CHECK(said.verdict == Verdict::failed);
  CHECK_FALSE(said.found.first);
}

TEST_CASE("probe: numbers that differ by rounding are told, and copies of parameters are compared with the others'") {
  using compare::Verdict;
  Run a = training(), b = training();
  b.layout = "ZeRO-2";
  a.steps[1].scalars["norm"] = 0.5, b.steps[1].scalars["norm"] = 0.5 + 1e-9;
  const Diagnosis found = diagnose(a, b);
  CHECK(Account(a, b, found, {}, -1).rounded() == std::vector<std::string>{"step 1: norm: 0.5 and 0.500000001"});
  b.steps[1].scalars["norm"] = 0.5;
  put(b.steps[1].tensors, "model/w", 0.5 - 0.01);
  const Said same = compared(a, b), other_way = compared(b, a);
  CHECK(same.verdict == Verdict::exact);
  REQUIRE(same.found.notes.size() == 1);
  CHECK(same.found.notes[0] ==
        "the forward pass of B computes with copies of 1 parameter (model), that of the other side with the parameters "
        "themselves: all have the same bits");
  CHECK(other_way.found.notes[0].starts_with("the forward pass of A "));
  b.steps[1].tensors.at("model/w").digest += 1;
  const Said apart = compared(a, b);
  CHECK(apart.found.notes.empty());
  REQUIRE(apart.found.only.size() == 1);
  CHECK(apart.found.only[0].ends_with("; `zs-verify B` checks that they are the rounded parameters"));
}

TEST_CASE("probe: what differs by its digest alone is excused where all that it leads to has the same bits") {
  using compare::Verdict;
  Run a = training();
  a.steps[1].ranks[0].batch = {{"0"}}, a.steps[1].ranks[0].generators["torch"] = "1";
  for (const std::int64_t step : {2, 3}) {
    a.steps[step] = a.steps[1];
    a.steps[step].ranks[0].step = step, a.steps[step].ranks[0].counters = {{std::to_string(step), {"w"}}};
    a.steps[step].ranks[0].generators["torch"] = std::to_string(step);
  }
  a.end = 3;
  CHECK(compared(a, a).verdict == Verdict::exact);
  const auto moved = [&](const std::vector<std::int64_t>& steps, const std::function<void(Run&)>& change = {}) {
    Run b = a;
    for (const std::int64_t step : steps) b.steps[step].ranks[0].generators["torch"] = "other";
    if (change) change(b);
    return compared(a, b).verdict;
  };
  CHECK(moved({1, 2, 3}) == Verdict::exact);
  CHECK(moved({2, 3}) == Verdict::exact);
  CHECK(moved({3}) == Verdict::inconclusive);     // no later step shows what it means
  CHECK(moved({1, 2}) == Verdict::inconclusive);  // one state that is another
  CHECK(moved({2}) == Verdict::inconclusive);
  CHECK(moved({2, 3}, [](Run& b) { b.steps[3].ranks[0].batch = {{"9"}}; }) > Verdict::rounding);
  CHECK(moved({2, 3}, [](Run& b) { b.steps[3].ranks[0].loss = probefile::Real{1.6}; }) == Verdict::different);
  const auto renamed = [&](std::int64_t last) {
    return moved({}, [&](Run& b) {
      for (std::int64_t step = 1; step <= last; ++step) b.steps[step].ranks[0].batch = {{"9"}};
    });
  };
  CHECK(renamed(3) == Verdict::exact);  // labels are handed to the model on one side
  CHECK(renamed(2) == Verdict::inconclusive);
  for (std::int64_t step = 1; step <= 3; ++step) a.steps[step].ranks[0].batch.clear();  // samples were not seen
  CHECK(moved({1, 2, 3}) == Verdict::inconclusive);
}

TEST_CASE("probe: a copy in 16 bits is as far from its parameter as the type rounds, however far the parameters are") {
  using compare::Verdict;
  const auto copied = [](double by) {
    Run run = training({.noise = 0.004});
    run.steps[1].locals.clear();
    Tensor& moved = run.steps[1].tensors.at("param/w");
    for (std::size_t i = 0; i < kSums; ++i) moved.sketch[i] += 0.0005 * std::cos(3.0 * static_cast<double>(i));
    ++moved.digest;
    put(run.steps[1].tensors, "model/w", 0.49, 0.0005 + by, "BF16");
    return run;
  };
  Run a = training();
  a.steps[1].locals.clear(), put(a.steps[1].tensors, "model/w", 0.49, 0, "BF16");
  CHECK(compared(a, copied(0)).verdict == Verdict::rounding);
  CHECK(compared(a, copied(0.01)).verdict == Verdict::different);
}

TEST_CASE("probe: sums of equal values may differ by their order beside a golden, and beside nothing else") {
  using compare::Verdict;
  const Run a = training();
  Run b = a;
  Tensor& tensor = b.steps[1].tensors.at("param/w");
  tensor.squares = std::nextafter(tensor.squares, 1e9);
  CHECK(compared(a, b).verdict == Verdict::failed);
  tensor.shortened = true;
  CHECK(compared(a, b).verdict == Verdict::exact);
  tensor.squares *= 1.001;
  CHECK(compared(a, b).verdict == Verdict::failed);
}

TEST_CASE("probe: where inputs have the same bits the bound is float32's, also under bfloat16") {
  using compare::Verdict;
  const Run a = training();
  CHECK(compared(a, training({.gradient = 1 + 1e-6})).verdict == Verdict::rounding);
  CHECK(compared(a, training({.gradient = 1.01})).verdict == Verdict::different);
  CHECK(compared(a, training({.noise = 1e-4})).verdict == Verdict::different);
  CHECK(compared(a, training({.state = 1.01})).verdict == Verdict::different);
  CHECK(compared(a, training({.update = 1.3})).verdict == Verdict::different);
  CHECK(compared(a, training({.update = 1 + 1e-6})).verdict == Verdict::rounding);
}

TEST_CASE(
    "probe: in bfloat16 a direction of Muon turns as far as its iterations enlarge rounding, and gets no longer") {
  // Momenta that are 0.002 apart, and an update that is `turned` away from the other and `length` as long.
  const auto told = [](const std::string& dtype, std::int64_t rows, double turned, double length = 1) {
    const auto made = [&](double momentum, double along, double across) {
      Run run = training({.computed = dtype});
      for (Group* const group : {&run.steps[1].groups[0], &run.steps[1].ranks[0].groups[0]})
        group->options["ns_steps"] = {{5}, ""}, group->optimizer = "Muon";
      run.starts.clear(), run.steps[1].tensors = {}, run.steps[1].locals.clear();
      put(run.starts[0], "param/w", 0.5);
      put(run.steps[1].tensors, "grad/w", 0.15, momentum, dtype);
      put(run.steps[1].tensors, "state.momentum_buffer/w", 0.15, momentum);
      put(run.steps[1].tensors, "param/w", 0.5 - 0.01 * along, 0.01 * across);
      for (Tensors* const tensors : {&run.starts[0], &run.steps[1].tensors}) {
        for (const auto& [name, tensor] : tensors->all()) tensors->at(name).shape = {rows, 256 / rows};
      }
      return run;
    };
    return compared(made(0, 1, 0), made(0.0003, length, length * turned)).verdict;
  };
  using compare::Verdict;
  CHECK(told("BF16", 16, 0.3) == Verdict::rounding);  // 3.4445^5 x 0.0026 / sqrt(16)
  CHECK(told("BF16", 16, 0.5) == Verdict::different);
  CHECK(told("F32", 16, 0.3) == Verdict::different);
  CHECK(told("BF16", 16, 0.1, 1.1) == Verdict::different);
}

TEST_CASE("probe: a factor that fits far better than its bound is no rounding; noise of the same size is") {
  Run a = training(), b = training({.local = 1.04});
  for (Run* run : {&a, &b}) run->steps[1].locals.clear();  // nothing shows the inputs
  const Said scaled = compared(a, b);
  CHECK(scaled.verdict == compare::Verdict::different);
  REQUIRE(scaled.found.first);
  CHECK(scaled.found.first->relation == "x 1.040");
  Run c = training({.noise = 0.004});
  c.steps[1].locals.clear();
  CHECK(compared(a, c).verdict == compare::Verdict::rounding);
}

TEST_CASE("probe: groups are known by the parameters that they hold") {
  const Group one{{{"lr", {{0.1}, ""}}}, {"w"}, "SGD"}, other{{{"lr", {{0.2}, ""}}}, {"b"}, "SGD"};
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  CHECK(paired({one, other}, {other, one}) == Pairs{{0, 1}, {1, 0}});
  CHECK(options_apart(one, other).front().text == "0.2 instead of 0.1");
  Group way = one;
  way.options["fused"] = {{}, "true"};
  CHECK(options_apart(one, way).empty());
  way.options["nesterov"] = {{}, "true"};
  CHECK(options_apart(one, way).front().verdict == compare::Verdict::inconclusive);
}

TEST_CASE("probe: an option that an earlier release of PyTorch lacks says what that release does") {
  Group group{{{"decoupled_weight_decay", {{}, "true"}}, {"lr", {{0.1}, ""}}}, {"w"}, "AdamW"};
  CHECK(implied(group, "decoupled_weight_decay"));
  CHECK(!implied(group, "lr"));
  CHECK(!implied(group, "amsgrad"));
  group.optimizer = "Adam";
  CHECK(!implied(group, "decoupled_weight_decay"));
}

}  // namespace zs::probe
