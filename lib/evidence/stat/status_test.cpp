// SPDX-License-Identifier: Apache-2.0
// The status of a run, as its summary says it.
#include "stat/status.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

#include "metric/file.hpp"
#include "stat/summary.hpp"

namespace zs::stat {
namespace {

Summary summary_of(const std::string& text) { return summarize(metric::parse("#zs-metrics 1\n" + text, "test"), {}); }
std::string text(const Summary& summary, const char* column, std::size_t row = 0) {
  return summary.store.summary->find(column)->text(row);
}
/// Status and reason of a run with these attributes and rows.
std::string judged(const std::string& attributes, const std::string& rows) {
  const Summary made = summary_of(attributes + "run\tstep\tloss\tgrad_norm\tline\n" + rows);
  return text(made, "status") + ": " + text(made, "reason");
}

}  // namespace

TEST_CASE("a run is believed only as far as its records go") {
  const std::string rows = "a\t10\t3\t1\t5\na\t20\t2\t1\t6\na\t30\t1\t1\t7\n";
  CHECK(judged("#@ a expected_steps=30\n", rows) == "COMPLETE: ");
  CHECK(judged("#@ a expected_steps=35\n#@ a summary.steps=35\n", rows) == "COMPLETE: ");
  CHECK(judged("#@ a expected_steps=40\n#@ a exit_code=0\n", rows) == "TRUNCATED: ends at step 30 of 40");
  CHECK(judged("#@ a expected_steps=30\n#@ a exit_code=137\n", rows) == "FAILED: ended by SIGKILL");
  CHECK(judged("#@ a exit_code=0\n", rows) == "COMPLETE: ");
  CHECK(judged("#@ a exit_state=finished\n", rows) == "COMPLETE: ");
  CHECK(judged("#@ a exit_code=0\n", "") == "UNKNOWN: no metric records");
  CHECK(judged("", rows) == "UNKNOWN: ended, not known to be complete");
  CHECK(judged("#@ a steps=30\n", rows) == "COMPLETE: ");
  CHECK(judged("#@ a max_iters=31\n", rows) == "COMPLETE: ");  // the next line would be that of step 40
  CHECK(judged("#@ a max_iters=40\n", rows) == "TRUNCATED: ends at step 30 of 40");
  CHECK(judged("#@ a max_iters=31\n#@ a exit_state=failed\n#@ a error=KeyError\n", rows) ==
        "FAILED: KeyError; ends at step 30 of 31");
  CHECK(judged("#@ a steps=3\n", "a\t0\t3\t1\t5\na\t1\t2\t1\t6\na\t2\t1\t1\t7\n") == "COMPLETE: ");
  CHECK(judged("#@ a source=logs/a.log\n#@ a expected_steps=30\n",
               "a\t10\t3\t1\t5\na\t20\tnan\t1\t6\na\t30\t1\t1\t7\n") ==
        "DIVERGED: the loss is nan at step 20 (a.log:6)");
  CHECK(judged("", "a\t10\t-inf\t1\t5\n") == "DIVERGED: the loss is -inf at step 10 (line 5)");
  CHECK(judged("#@ a expected_steps=30\n", "a\t10\t3\t1\t5\na\t20\t3\t1\t6\na\t30\t3\t1\t7\n") ==
        "DEAD: the loss is 3 at all 3 points");
  CHECK(judged("#@ a expected_steps=30\n", "a\t10\t3\t0\t5\na\t30\t2\t0\t6\n") ==
        "DEAD: the gradient norm is 0 at all 2 points");
  CHECK(judged("#@ a exit_code=1\n", "") == "FAILED: exit code 1");
  CHECK(judged("#@ a exit_code=1\n", "a\t10\tnan\t1\t5\n") == "DIVERGED: the loss is nan at step 10 (line 5)");
  CHECK(judged("#@ a exit_code=137\n", "a\t10\tnan\t1\t5\n") == "FAILED: ended by SIGKILL");
  CHECK(judged("#@ a expected_steps=30\n", "") == "TRUNCATED: no metric records of 30");
  CHECK(judged("#@ a exit_code=0\n", "") == "UNKNOWN: no metric records");
}

TEST_CASE("a run whose losses fall is not dead, whatever another column says") {
  const auto with = [](const std::string& norm, std::initializer_list<const char*> losses) {
    std::string rows;
    int step = 0;
    for (const char* const loss : losses)
      ++step, rows += "a\t" + std::to_string(step) + "\t" + loss + "\t" + norm + "\t1\n";
    return judged("#@ a expected_steps=100\n", rows);
  };
  CHECK(with("0", {"12.4", "11.9", "11.2", "10.8", "10.1", "9.7"}) == "TRUNCATED: ends at step 6 of 100");
  CHECK(with("0", {"12.4", "12.1", "12.6", "12.2", "12.5", "12.3"}) == "DEAD: the gradient norm is 0 at all 6 points");
  CHECK(with("0", {"12", "12", "12", "12", "12"}) == "DEAD: the loss is 12 at all 5 points");
  // The loss of GRPO is 0 by its definition.
  CHECK(with("1.5", {"0", "0", "0", "0", "0"}) == "TRUNCATED: ends at step 5 of 100");
  CHECK(with("0", {"0", "0", "0", "0", "0"}) == "DEAD: the loss is 0 at all 5 points");
}

TEST_CASE("a loss that has grown out of any scale has diverged, although it is finite") {
  const auto with = [](std::initializer_list<const char*> losses) {
    std::string rows;
    int step = 0;
    for (const char* const loss : losses) ++step, rows += "a\t" + std::to_string(step) + "\t" + loss + "\t1\t1\n";
    return judged("#@ a expected_steps=6\n", rows);
  };
  CHECK(with({"5.49", "6.1", "80", "900", "4100", "6615"}) == "DIVERGED: the loss has grown from 5.49 to 6615");
  CHECK(with({"5.49", "6.1", "80", "900", "41", "6"}) == "COMPLETE: ");       // it came back
  CHECK(with({"12.4", "12.1", "30", "38", "40", "41"}) == "COMPLETE: ");      // too little to be sure
  CHECK(with({"0.01", "0.02", "0.5", "0.9", "1.1", "1.2"}) == "COMPLETE: ");  // within the scale of losses
  CHECK(with({"-0.5", "-0.1", "50", "90", "110", "120"}) == "COMPLETE: ");    // no loss of likelihoods
}

TEST_CASE("a step that is missing is a failure with its place") {
  const auto steps = [](const std::string& attributes, std::initializer_list<int> logged) {
    std::string rows;
    int line = 0;
    for (const int step : logged) {
      ++line;
      rows += "a\t" + std::to_string(step) + "\t" + std::to_string(9.0 / line) + "\t1\t" + std::to_string(line) + "\n";
    }
    return judged("#@ a source=a.log\n" + attributes, rows);
  };
  const std::string of5 = "#@ a expected_steps=5\n", of100 = "#@ a expected_steps=100\n";
  CHECK(steps(of5, {1, 2, 3, 4, 5}) == "COMPLETE: ");
  CHECK(steps(of5, {1, 2, 4, 5}) == "TRUNCATED: step 3 is missing, after the one at step 2 (a.log:2)");
  CHECK(steps("#@ a expected_steps=6\n", {1, 2, 5, 6}) ==
        "TRUNCATED: 2 logged steps are missing, the first is 3, after the one at step 2 (a.log:2)");
  CHECK(steps(of5, {3, 4, 5}) == "TRUNCATED: 2 logged steps are missing, the first is 1");
  CHECK(steps("#@ a resumed_after_step=2\n" + of5, {3, 4, 5}) == "COMPLETE: ");
  // by the interval that the run says, or that its points have
  CHECK(steps("#@ a log_interval=2\n" + of5, {1, 2, 4, 5}) == "COMPLETE: ");
  CHECK(steps("#@ a log_interval=1\n#@ a expected_steps=4\n", {1, 2, 4}) ==
        "TRUNCATED: step 3 is missing, after the one at step 2 (a.log:2)");
  CHECK(steps(of100, {1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}) == "COMPLETE: ");
  CHECK(steps(of100, {10, 20, 30, 40, 47, 50, 60, 70, 80, 90, 100}) == "COMPLETE: ");
  CHECK(steps(of100, {10, 20, 30, 50, 60, 70, 80, 90, 100}) ==
        "TRUNCATED: step 40 is missing, after the one at step 30 (a.log:3)");
  CHECK(steps("#@ a expected_steps=25\n", {10, 20, 25}) == "COMPLETE: ");
  CHECK(steps("#@ a expected_steps=20\n", {1, 10, 20}) == "COMPLETE: ");
  CHECK(steps(of100, {3, 10, 12, 40, 100}) == "COMPLETE: ");  // no interval that most have
  CHECK(steps(of100, {100}) == "COMPLETE: ");
  // an end between two logged steps
  const std::string of97 = "#@ a expected_steps=97\n";
  CHECK(steps("#@ a exit_code=0\n" + of100, {0, 10, 20, 30, 40, 50, 60, 70, 80, 90}) == "COMPLETE: ");
  CHECK(steps(of100, {0, 10, 20, 30, 40, 50, 60, 70, 80, 90}) ==
        "UNKNOWN: ends at step 90 of 100, and would log none of the others");
  CHECK(steps("#@ a exit_code=0\n" + of97, {10, 20, 30, 40, 50, 60, 70, 80, 90}) == "COMPLETE: ");
  CHECK(steps("#@ a exit_state=finished\n" + of97, {1, 10, 20, 30, 40, 50, 60, 70, 80, 90}) == "COMPLETE: ");
  CHECK(steps("#@ a exit_code=0\n" + of97, {1, 11, 21, 31, 41, 51, 61, 71, 81, 91}) == "COMPLETE: ");
  CHECK(steps(of100, {9, 19, 29, 39, 49, 59, 69, 79, 89, 99}) == "COMPLETE: ");
  CHECK(steps(of97, {0, 10, 20, 30, 40, 50, 60, 70, 80}) == "TRUNCATED: ends at step 80 of 97");
  CHECK(steps(of100, {10, 20, 30, 40, 50, 60, 70, 80, 90}) == "TRUNCATED: ends at step 90 of 100");
  CHECK(steps(of97, {10, 20, 30, 40, 50, 60, 70, 77}) == "TRUNCATED: ends at step 77 of 97");
  CHECK(steps("#@ a log_interval=1000\n" + of97, {1, 2}) == "TRUNCATED: ends at step 2 of 97");
  CHECK(steps(of97, {10}) == "TRUNCATED: ends at step 10 of 97");
  // an interval that changes
  const std::string of45 = "#@ a expected_steps=45\n";
  CHECK(steps("#@ a exit_code=0\n" + of45, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40}) == "COMPLETE: ");
  CHECK(steps(of45, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30}) == "TRUNCATED: ends at step 30 of 45");
  CHECK(steps("#@ a expected_steps=20\n", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20}) == "COMPLETE: ");
  CHECK(steps("#@ a expected_steps=36\n", {10, 20, 30, 31, 32, 33, 34, 35, 36}) == "COMPLETE: ");
  CHECK(steps("#@ a expected_steps=70\n", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 50, 60, 70}) ==
        "TRUNCATED: step 40 is missing, after the one at step 30 (a.log:12)");
  CHECK(steps("#@ a expected_steps=10\n", {1, 2, 3, 4, 5, 7, 9, 10}) ==
        "TRUNCATED: 2 logged steps are missing, the first is 6, after the one at step 5 (a.log:5)");
  CHECK(steps("#@ a expected_steps=80\n", {10, 20, 30, 40, 50, 60, 80}) ==
        "TRUNCATED: step 70 is missing, after the one at step 60 (a.log:6)");
  // its own summary line tells of less than one interval
  CHECK(steps("#@ a summary.steps=100\n" + of100, {1, 2}) == "TRUNCATED: ends at step 2 of 100");
  CHECK(steps("#@ a summary.steps=100\n" + of100, {30, 60, 90}) == "COMPLETE: ");
  CHECK(steps("#@ a summary.steps=-3\n" + of5, {1, 2, 3, 4, 5}) == "COMPLETE: ");
  // numbers of steps that are none
  CHECK(steps("#@ a expected_steps=-5\n", {1, 2}) == "UNKNOWN: it should have '-5' steps");
  CHECK(steps("#@ a expected_steps=9223372036854775807\n", {1, 2}) ==
        "UNKNOWN: it should have '9223372036854775807' steps");
}

TEST_CASE("an epoch that begins its steps anew misses none") {
  const Summary made = summary_of(
      "#@ a expected_steps=3\nrun\tepoch\tstep\tloss\n"
      "a\t1\t1\t5\na\t1\t2\t4\na\t1\t3\t3\na\t2\t1\t2.5\na\t2\t2\t2.25\na\t2\t3\t2\n");
  CHECK(text(made, "status") == "COMPLETE");
}

TEST_CASE("a run whose parameters cannot have moved is dead, one whose gradients are not finite diverged") {
  const std::string head = "#@ a expected_steps=3\n";
  const auto with = [&](const std::string& attributes, const std::string& column,
                        std::initializer_list<const char*> values) {
    std::string rows;
    int step = 0;
    for (const char* const value : values) {
      ++step;
      rows += "a\t" + std::to_string(step) + "\t" + std::to_string(6 - step) + "\t" + value + "\n";
    }
    const Summary made = summary_of(head + attributes + "run\tstep\tloss\t" + column + "\n" + rows);
    return text(made, "status") + ": " + text(made, "reason");
  };
  CHECK(with("", "learning_rate", {"0", "0", "0"}) == "DEAD: the learning rate is 0 at all 3 points");
  CHECK(with("", "learning_rate", {"0", "0.1", "0"}) == "COMPLETE: ");
  CHECK(with("#@ a learning_rate=0\n", "grad_norm", {"1", "2", "1"}) == "DEAD: the learning rate is 0");
  CHECK(with("#@ a learning_rate=1e-3\n", "grad_norm", {"1", "2", "1"}) == "COMPLETE: ");
  CHECK(with("", "skipped", {"1", "2", "3"}) == "DEAD: all 3 steps were skipped: no gradient was finite");
  CHECK(with("", "skipped", {"1", "2", "2"}) == "COMPLETE: ");
  CHECK(with("#@ a dtype=float32\n", "grad_norm", {"1", "1", "nan"}) == "DIVERGED: the gradient norm is nan at step 3");
  CHECK(with("#@ a dtype=bfloat16\n", "grad_norm", {"1", "inf", "1"}) ==
        "DIVERGED: the gradient norm is inf at step 2");
  CHECK(with("#@ a dtype=float16\n", "grad_norm", {"inf", "1", "inf"}) == "COMPLETE: ");
  CHECK(with("#@ a dtype=float16\n", "grad_norm", {"inf", "inf", "inf"}) ==
        "DIVERGED: the gradient norm is inf at step 1");
  CHECK(with("", "grad_norm", {"1", "inf", "1"}) == "COMPLETE: ");  // perhaps a scaled loss
  CHECK(with("", "grad_norm", {"1", "nan", "nan"}) == "DIVERGED: the gradient norm is nan at step 2");
}

TEST_CASE("iterations of Megatron that were skipped or nan are judged, although they have no loss") {
  const auto with = [](std::initializer_list<const char*> rows) {
    std::string text_of =
        "#@ a expected_steps=3\nrun\tstep\titeration_time\tskipped_iterations\tnan_iterations\tloss\n";
    int step = 0;
    for (const char* const row : rows) text_of += "a\t" + std::to_string(++step) + "\t0.1\t" + row + "\n";
    const Summary made = summary_of(text_of);
    return text(made, "status") + ": " + text(made, "reason");
  };
  CHECK(with({"0\t0\t9", "1\t1\t", "1\t1\t"}) ==
        "DIVERGED: the loss is not finite in the iterations up to step 2, and no loss comes after");
  CHECK(with({"1\t1\t", "1\t1\t", "1\t1\t"}).starts_with("DIVERGED: "));
  CHECK(with({"1\t0\t", "1\t0\t", "1\t0\t"}) == "DEAD: every iteration was skipped: no gradient was finite");
  CHECK(with({"0\t0\t9", "1\t1\t", "0\t0\t8"}) == "COMPLETE: ");
  CHECK(with({"0\t0\t9", "1\t0\t", "0\t0\t8"}) == "COMPLETE: ");
}

TEST_CASE("a training that the Trainer ended by itself is complete, also before its last step") {
  const std::string rows = "a\t10\t3\t1\t5\na\t20\t2\t1\t6\na\t30\t1\t1\t7\n", early = "#@ a expected_steps=60\n";
  CHECK(judged(early + "#@ a exit_state=finished\n#@ a summary.train_runtime=9\n", rows) == "COMPLETE: ");
  CHECK(judged(early + "#@ a exit_state=finished\n#@ a summary.train_runtime=9\n#@ a summary.steps=50\n", rows) ==
        "TRUNCATED: ends at step 30 of 50");
  CHECK(judged(early + "#@ a exit_state=finished\n", rows) == "TRUNCATED: ends at step 30 of 60");
}

TEST_CASE("equal numbers of few digits in a log do not prove that a run is dead") {
  const auto with = [](const std::string& columns, std::initializer_list<const char*> cells) {
    std::string rows;
    int step = 0;
    for (const char* const cell : cells) rows += "a\t" + std::to_string(++step) + "\t" + cell + "\n";
    const Summary made = summary_of("#@ a expected_steps=3\n#@ a source=a.log\nrun\tstep\t" + columns + "\n" + rows);
    return text(made, "status") + ": " + text(made, "reason");
  };
  CHECK(with("loss", {"0.07", "0.07", "0.07"}) == "COMPLETE: ");
  CHECK(with("loss", {"0.0", "0.0", "0.0"}) == "DEAD: the loss is 0 at all 3 points");
  CHECK(with("loss", {"2.3026", "2.3026", "2.3026"}) == "DEAD: the loss is 2.3026 at all 3 points");
  CHECK(with("loss", {"0.693", "0.693", "0.693"}) == "DEAD: the loss is 0.693 at all 3 points");
}

TEST_CASE("a loss of another rank that is not finite is seen") {
  const Summary made = summary_of("run\tstep\tloss\trank\na\t1\t2\t0\na\t1\tnan\t3\na\t2\t1\t0\na\t2\t1\t3\n");
  CHECK(text(made, "status") == "DIVERGED");
  CHECK(text(made, "reason") == "the loss of another rank is nan at step 1");
  CHECK(text(made, "final_loss") == "1");
}

}  // namespace zs::stat
