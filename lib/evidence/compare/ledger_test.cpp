// SPDX-License-Identifier: Apache-2.0
#include "compare/ledger.hpp"

#include <doctest/doctest.h>

#include <type_traits>

namespace zs::compare {
namespace {

Holdings holding(const std::string& thing, std::int64_t count) {
  Holdings held;
  held.add(thing, count);
  return held;
}

}  // namespace

TEST_CASE("ledger: nothing but a ledger makes a verdict that says equal") {
  static_assert(!std::is_constructible_v<Settled, Verdict>);
  static_assert(!std::is_assignable_v<Settled&, Verdict>);
  Settled made;
  CHECK(made == Verdict::failed);
  made.worsen(Verdict::exact);
  CHECK(made == Verdict::failed);
  made.worsen(Verdict::different);
  CHECK(name(made) == "DIFFERENT");
}

TEST_CASE("ledger: each word has its name and its status") {
  const auto settled_as = [](Verdict outcome) {
    Ledger ledger(holding("loss", 1), holding("loss", 1));
    ledger.compared("loss", outcome);
    return ledger.settle();
  };
  CHECK(name(settled_as(Verdict::exact)) == "exact");
  CHECK(name(settled_as(Verdict::not_comparable)) == "not comparable");
  CHECK(name(settled_as(Verdict::rounding)) == "equal up to rounding");
  for (const Verdict yes : {Verdict::exact, Verdict::printed, Verdict::within})
    CHECK(status(settled_as(yes)) == Status::done);
  for (const Verdict no : {Verdict::rounding, Verdict::failed, Verdict::different})
    CHECK(status(settled_as(no)) == Status::no);
  CHECK(status(settled_as(Verdict::rounding), true) == Status::done);
  CHECK(status(settled_as(Verdict::different), true) == Status::no);
  for (const Verdict open : {Verdict::inconclusive, Verdict::not_comparable})
    CHECK(status(settled_as(open), true) == Status::inconclusive);
}

TEST_CASE("ledger: what one side lacks, and what nobody compared, is not exact") {
  Ledger forgotten(holding("grad", 4), holding("grad", 4));
  forgotten.compared("grad", Verdict::exact, 3);
  CHECK(forgotten.settle() == Verdict::inconclusive);
  CHECK(forgotten.open().front().compared == 3);
  forgotten.compared("grad", Verdict::exact);
  CHECK(forgotten.settle() == Verdict::exact);

  Holdings more = holding("grad", 4);
  more.add("loss", 2);
  Ledger lacking(more, holding("grad", 4));
  lacking.compared("grad", Verdict::exact, 4);
  CHECK(lacking.settle() == Verdict::inconclusive);
  CHECK(lacking.open().front().thing == "loss");
  lacking.excuse(Holder::a, "loss", 2);
  CHECK(lacking.settle() == Verdict::exact);

  CHECK(Ledger({}, {}).settle() == Verdict::failed);  // nothing was compared
  Ledger excused(holding("loss", 1), {});
  excused.excuse(Holder::a, "loss");
  CHECK(excused.settle() == Verdict::failed);
}

TEST_CASE("ledger: a list that lacks what was compared is a fault of its reader") {
  Ledger ledger(holding("loss", 1), {});
  ledger.compared("loss", Verdict::exact);
  CHECK_THROWS_AS(static_cast<void>(ledger.settle()), Error);
}

}  // namespace zs::compare
