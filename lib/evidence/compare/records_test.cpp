// SPDX-License-Identifier: Apache-2.0
#include "compare/records.hpp"

#include <doctest/doctest.h>

#include "metric/file.hpp"

namespace zs::compare {
namespace {

metric::Table table(const std::string& text) {
  return metric::parse("#zs-metrics 1\n" + text, "test").runs.at(0).records;
}

Records of(const std::string& a, const std::string& b, const Tolerance& tolerance = {},
           const std::vector<std::string>& names = {}) {
  const metric::Table x = table(a), y = table(b);
  return records({"a", &x, {}}, {"b", &y, {}}, tolerance, names);
}
std::string reason(const Records& found) { return found.reasons.empty() ? "" : found.reasons.front().text; }

const std::string kHead = "run\tstep\tloss\tgrad_norm\n", kWhole = kHead + "r\t1\t3\t1\nr\t2\t2\t1.5\n";

}  // namespace

TEST_CASE("records: the same bits are exact; the first difference has its place, all are counted") {
  CHECK(of(kWhole, kWhole).verdict == Verdict::exact);
  const Records found = of(kWhole, kHead + "r\t1\t3\t1.25\nr\t2\t2.5\t1\n");
  CHECK(found.verdict == Verdict::different);
  REQUIRE(found.first);
  CHECK(found.first->column == "grad_norm");
  CHECK(to_text(found.first->place) == "step 1");
  CHECK(found.columns[0].differing == 1);
  CHECK(found.columns[1].differing == 2);
  CHECK(of(kHead + "r\t1\t0\t1\n", kHead + "r\t1\t-0\t1\n").verdict == Verdict::different);
  CHECK(of(kWhole, kHead + "r\t1\t3\t1\nr\t2\t2.0001\t1.5\n", {1e-3, 0}).verdict == Verdict::within);
  CHECK(of(kWhole, kHead + "r\t1\t3\t1\nr\t2\t2.1\t1.5\n", {1e-3, 0}).verdict == Verdict::different);
}

TEST_CASE("records: what only one side has is never agreement") {
  CHECK(reason(of(kWhole, kHead + "r\t1\t3\t1\n")) == "step 2 is in a and missing in b");
  CHECK(reason(of(kWhole, kHead + "r\t1\t3\t1\nr\t2\t2\t\n")) == "grad_norm of step 2 is missing in b");
  const Records column = of(kWhole, "run\tstep\tloss\nr\t1\t3\nr\t2\t2\n");
  CHECK(column.verdict == Verdict::inconclusive);
  CHECK(column.only_a == std::vector<std::string>{"grad_norm"});
  CHECK(of(kWhole, "run\tstep\tloss\nr\t1\t3\nr\t2\t2\n", {}, {"loss"}).verdict == Verdict::exact);
  const Records holes = of(kHead + "r\t1\t3\t1\nr\t2\t\t1.5\n", kHead + "r\t1\t3\t1\nr\t2\t\t1.5\n");
  CHECK(holes.verdict == Verdict::inconclusive);
  CHECK(holes.without_loss == 1);
  CHECK(reason(of(kWhole, kHead + "r\t7\t3\t1\n")) == "the runs have no step in common");
  CHECK(reason(of("run\tstep\tgrad_norm\nr\t1\t3\n", "run\tstep\tgrad_norm\nr\t1\t3\n")) ==
        "not both runs have a loss");
}

TEST_CASE("records: a step that the other side's stride leaves out is no fault; one that it should have is") {
  const auto steps = [](std::vector<int> numbers) {
    std::string text = "run\tstep\tloss\n";
    for (const int step : numbers) text += "r\t" + std::to_string(step) + "\t" + std::to_string(10 - step) + "\n";
    return table(text);
  };
  const auto found = [](const metric::Table& a, std::int64_t every_a, const metric::Table& b, std::int64_t every_b) {
    return records({"a", &a, {}, every_a}, {"b", &b, {}, every_b}, {});
  };
  const metric::Table every = steps({1, 2, 3, 4, 5, 6}), second = steps({2, 4, 6}), third = steps({1, 3, 6, 9});
  const Records thinned = found(every, 1, second, 2);
  CHECK(thinned.verdict == Verdict::exact);
  CHECK(thinned.rows == 3);
  CHECK(thinned.alone_a == 3);
  CHECK(found(second, 2, every, 1).alone_b == 3);
  CHECK(found(second, 2, third, 3).verdict == Verdict::failed);             // step 9 is there, and 8 is not
  CHECK(found(second, 2, steps({1, 3, 6}), 3).verdict == Verdict::failed);  // two rows show no stride
  CHECK(found(every, 1, second, 0).verdict == Verdict::failed);
  CHECK(reason(found(steps({1, 2, 3, 4, 5, 6, 7, 8}), 1, second, 2)) == "step 8 is in a and missing in b");
  CHECK(reason(found(every, 1, steps({2, 4, 6, 10}), 2)) == "step 10 is in b and missing in a");
  CHECK(reason(found(steps({1, 2, 3, 4, 5, 6, 8}), 1, steps({2, 6, 8}), 2)) == "step 4 is in a and missing in b");
}

TEST_CASE("records: no epoch, rank or attempt overwrites another") {
  const std::string epochs = "run\tepoch\tstep\tloss\n", ranks = "run\trank\tstep\tloss\n";
  const Records first = of(epochs + "r\t1\t10\t9\nr\t2\t10\t3\n", epochs + "r\t1\t10\t5\nr\t2\t10\t3\n");
  CHECK(first.verdict == Verdict::different);
  CHECK(to_text(first.first->place) == "epoch 1, step 10");
  const Records nan = of(ranks + "r\t0\t1\tnan\nr\t1\t1\t3\n", ranks + "r\t0\t1\t9\nr\t1\t1\t3\n");
  CHECK(nan.verdict == Verdict::failed);
  CHECK(reason(nan) == "loss of step 1 is not finite in a: nan and 9");
  CHECK(of(ranks + "r\t0\t1\t4\nr\t1\t1\t3\n", ranks + "r\t0\t1\t4\nr\t1\t1\t2\n").verdict == Verdict::different);
  // A run that was restarted at step 1 and died there is no whole run.
  const Records died = of(kWhole, kHead + "r\t1\t3\t1\nr\t2\t2\t1.5\nr\t1\t3\t1\n");
  CHECK(died.verdict == Verdict::failed);
  CHECK(reason(died) == "step 2 is in a, but b went back to an earlier step and did not reach it again");
  // One that got to the end is, if its attempts agree with the other run.
  const std::string again = kHead + "r\t1\t3\t1\nr\t2\t2\t1.5\nr\t1\t3\t1\nr\t2\t2\t1.5\n";
  CHECK(of(kWhole, again).verdict == Verdict::exact);
  CHECK(of(again, kWhole).repeated_a == 2);
  const Records given_up = of(kWhole, kHead + "r\t1\t3\t1\nr\t2\t7\t1.5\nr\t1\t3\t1\nr\t2\t2\t1.5\n");
  CHECK(given_up.verdict == Verdict::different);
  CHECK(given_up.first->b == "7");
}

TEST_CASE("records: a value that is not finite fails, but for the norm of a step that both skipped") {
  CHECK(reason(of(kHead + "r\t1\tnan\t1\n", kHead + "r\t1\tnan\t1\n")) ==
        "loss of step 1 is not finite in both: nan and nan");
  const std::string head = "run\tstep\tloss\tgrad_norm\tskipped\n";
  const std::string skipped = head + "r\t1\t3\tinf\t1\nr\t2\t2\t1\t0\n";
  CHECK(of(skipped, skipped).verdict == Verdict::exact);
  CHECK(of(head + "r\t1\t3\tinf\t0\n", head + "r\t1\t3\tinf\t0\n").verdict == Verdict::failed);
}

TEST_CASE("precision: what the digits show") {
  CHECK(precision_of({"2.345678", "2.3"}).decimals == 6);
  CHECK_FALSE(precision_of({"2.345678"}).every_bit);
  CHECK(precision_of({"5.567336559295654"}).every_bit);
  CHECK(precision_of({"4.9e-05"}).decimals == 6);
  CHECK(precision_of({"0.000000000000001"}).decimals == 15);
  CHECK_FALSE(precision_of({"0.000000000000001"}).every_bit);
  CHECK(precision_of({"0.0005"}).uncertainty() == doctest::Approx(5e-5));
  CHECK(precision_of({"1e-99999999999"}).decimals == 400);  // no double is so small, and no integer overflows
  CHECK(precision_of({"1e-99999999999999999999999"}).decimals == 400);
}

}  // namespace zs::compare
