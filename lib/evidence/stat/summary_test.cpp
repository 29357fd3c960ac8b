// SPDX-License-Identifier: Apache-2.0
#include "stat/summary.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "base/error.hpp"
#include "metric/file.hpp"

namespace zs::stat {
namespace {

Summary summary_of(const std::string& text, const SummaryRule& rule = {}) {
  return summarize(metric::parse("#zs-metrics 1\n" + text, "test"), rule);
}
double real(const Summary& summary, const char* column, std::size_t row = 0) {
  return summary.store.summary->find(column)->real(row);
}
std::string text(const Summary& summary, const char* column, std::size_t row = 0) {
  return summary.store.summary->find(column)->text(row);
}
SummaryRule no_warmup() {
  SummaryRule rule;
  rule.timing.warmup = 0;
  return rule;
}

}  // namespace

TEST_CASE("the figures of one run, by hand") {
  SummaryRule rule;
  rule.timing.warmup = 1;
  const Summary made = summary_of(
      "#@ a state_digest=abc\n#@ a expected_steps=40\n"
      "run\tstep\tloss\titeration_time\tpeak_mem\talloc_mem\ttokens\tcomm_bytes\tvalid_loss\n"
      "a\t10\t4\t9\t100\t50\t1000\t7\t\na\t20\t1\t2\t300\t60\t1000\t8\t3.5\na\t30\t3\t4\t200\t40\t1000\t8\t\n"
      "a\t40\t2\t6\t200\t55\t1000\t8\t2.5\n",
      rule);
  CHECK(text(made, "condition") == "a");
  CHECK(real(made, "runs") == 1);
  CHECK(real(made, "points") == 4);
  CHECK(text(made, "status") == "COMPLETE");
  CHECK(real(made, "first_loss") == 4);
  CHECK(real(made, "final_loss") == 2);
  CHECK(real(made, "best_loss") == 1);
  CHECK(real(made, "mean_loss") == 2.5);
  CHECK(real(made, "final_step") == 40);
  CHECK(real(made, "valid_loss") == 2.5);
  CHECK(real(made, "time_points") == 3);
  CHECK(real(made, "time_mean") == 4);
  CHECK(real(made, "time_median") == 4);
  CHECK(real(made, "time_std") == 2);
  CHECK(real(made, "time_low") == doctest::Approx(4 - 4.302653 * 2 / std::sqrt(3.0)).epsilon(1e-6));
  CHECK(real(made, "peak_mem") == 300);
  CHECK(real(made, "alloc_mem") == 60);
  CHECK(real(made, "tokens_per_second") == 250);
  CHECK(real(made, "comm_bytes") == 8);
  CHECK(text(made, "state_digest") == "abc");
  CHECK(made.warnings.empty());
  CHECK(made.store.attributes.at("warmup") == "1");
  CHECK(made.store.runs.size() == 1);
  CHECK(made.store.curves.at("a").rows() == 4);
}

TEST_CASE("a run that counts images has losses in nats, and images per second") {
  const std::string images =
                        "#@ v model.name=vit\nrun\tstep\tloss\titeration_time\timages\nv\t1\t4\t2\t8\nv\t2\t3\t2\t8\n",
                    text = "#zs-metrics 1\nrun\tstep\tloss\titeration_time\ttokens\na\t1\t4\t2\t100\na\t2\t3\t2\t100\n";
  const auto unit = [](const metric::Table& table, const char* column) { return table.find(column)->unit; };
  Summary made = summary_of(images, no_warmup());
  CHECK(real(made, "images_per_second") == 4);
  CHECK(made.store.summary->find("tokens_per_second")->absent(0));
  CHECK(made.store.summary->find("tokens_per_step")->absent(0));
  for (const char* column : {"final_loss", "best_loss", "smoothed_loss", "loss_spread"})
    CHECK(unit(*made.store.summary, column) == "nats");
  CHECK(unit(made.store.curves.at("v"), "loss_min") == "nats");
  CHECK(unit(made.store.tables.at("runs"), "final_loss") == "nats");
  CHECK(unit(made.store.runs[0].records, "loss") == "nats");
  // Through a file, and beside a run of text: each its own, and what both share in what both are.
  made = summarize(metric::parse(metric::to_h5(metric::parse("#zs-metrics 1\n" + images + text, "test")), "test"),
                   no_warmup());
  CHECK(real(made, "images_per_second", 0) == 4);
  CHECK(made.store.summary->find("images_per_second")->absent(1));
  CHECK(real(made, "tokens_per_second", 1) == 50);
  CHECK(unit(*made.store.summary, "final_loss") == "nats");
  CHECK(unit(made.store.runs[1].records, "loss") == "nats/token");
  made = summary_of(text, no_warmup());
  CHECK(made.store.summary->find("images_per_second") == nullptr);
  CHECK(unit(*made.store.summary, "final_loss") == "nats/token");
}

TEST_CASE("a count since the start is not what a step took") {
  const auto of = [](const std::string& columns, std::initializer_list<const char*> cells, const char* figure) {
    std::string rows;
    int step = 0;
    for (const char* const cell : cells) rows += "a\t" + std::to_string(++step) + "\t2.5\t" + cell + "\n";
    return real(summary_of("run\tstep\tloss\t" + columns + "\n" + rows, no_warmup()), figure);
  };
  const std::string time = "iteration_time", both = "tokens\t" + time, all = both + "\ttokens_per_second";
  // tokens so far
  CHECK(of(both, {"80\t2", "160\t2", "240\t2", "310\t2", "400\t2"}, "tokens_per_second") == 40);
  CHECK(of(all, {"80\t2\t44", "160\t2\t44", "240\t2\t44"}, "tokens_per_second") == 44);
  // tokens of a step, which grow with the sequences
  CHECK(of(both, {"80\t1", "81\t1", "82\t1", "83\t1", "84\t1"}, "tokens_per_second") == 82);
  // seconds since the start, 10 for each step; and of a step
  CHECK(of(time, {"25", "35", "45", "55", "65", "75", "85", "95"}, "time_mean") == 10);
  CHECK(of(time, {"1", "1.1", "1.2", "1.3", "1.4"}, "time_mean") == doctest::Approx(1.2));
}

TEST_CASE("the columns that everybody reads come first, in this order") {
  const Summary made = summary_of("run\tstep\tloss\na\t1\t2\n");
  const std::vector<std::string> order = {
      "condition", "runs",       "points",     "status",      "first_loss",        "final_loss",  "best_loss",
      "mean_loss", "final_step", "valid_loss", "time_points", "time_mean",         "time_median", "time_std",
      "time_low",  "time_high",  "peak_mem",   "alloc_mem",   "tokens_per_second", "comm_bytes",  "state_digest"};
  for (std::size_t c = 0; c < order.size(); ++c) CHECK(made.store.summary->columns[c].name == order[c]);
  CHECK(made.store.summary->find("time_mean")->absent(0));
  CHECK(made.store.summary->find("time_mean")->unit == "s");
  CHECK(made.store.summary->find("peak_mem")->unit == "bytes");
}

TEST_CASE("a warm-up longer than the run is cut, and said") {
  const Summary made = summary_of("run\tstep\titeration_time\na\t1\t9\na\t2\t1\na\t3\t2\n");
  CHECK(real(made, "time_points") == 1);
  CHECK(real(made, "time_mean") == 2);
  CHECK(made.store.summary->find("time_std")->absent(0));
  CHECK(made.store.attributes.at("warmup") == "5, or the number of each run; left out: a 2 of 3");
  CHECK(made.warnings == std::vector<std::string>{"run 'a' has only 3 timed points: warm-up of 5 cut to 2"});
}

TEST_CASE("runs that leave out equally many points are not listed one by one") {
  const std::string one = "a\t1\t9\na\t2\t1\na\t3\t2\n", two = "b\t1\t9\nb\t2\t1\nb\t3\t2\n";
  const std::string head = "run\tstep\titeration_time\n";
  CHECK(summary_of(head + one + two).store.attributes.at("warmup") ==
        "5, or the number of each run; left out: 2 of 3 in every run");
  CHECK(summary_of(head + one + two + "b\t4\t2\n").store.attributes.at("warmup") ==
        "5, or the number of each run; left out: a 2 of 3, b 3 of 4");
}

TEST_CASE("a run without records keeps its row") {
  const Summary made = summary_of("#@ dead exit_code=1\nrun\tstep\tloss\nlive\t1\t2\n");
  CHECK(text(made, "condition") == "dead");
  CHECK(real(made, "points") == 0);
  CHECK(made.store.summary->find("final_loss")->absent(0));
  CHECK(made.store.summary->find("final_step")->absent(0));
  CHECK(text(made, "condition", 1) == "live");
}

TEST_CASE("nan is a value of the loss, and does not hide the best") {
  const Summary made = summary_of("run\tstep\tloss\na\t1\tnan\na\t2\t3\na\t3\tnan\n");
  CHECK(std::isnan(real(made, "final_loss")));
  CHECK_FALSE(made.store.summary->find("final_loss")->absent(0));
  CHECK(real(made, "best_loss") == 3);
}

TEST_CASE("runs are grouped by an attribute; the mean and its interval are those of the runs") {
  SummaryRule rule = no_warmup();
  rule.by = {"stage"};
  const std::string runs =
      "#@ a stage=1\n#@ b stage=1\n#@ c stage=2\n#@ a state_digest=x\n#@ b state_digest=x\n#@ c state_digest=y\n"
      "run\tstep\tloss\titeration_time\na\t1\t4\t1\na\t2\t2\t1\nb\t1\t5\t3\nb\t2\t3\t3\nc\t1\t1\t1\n";
  const Summary made = summary_of(runs, rule);
  CHECK(made.store.summary->rows() == 2);
  CHECK(text(made, "condition") == "1");
  CHECK(real(made, "runs") == 2);
  CHECK(real(made, "points") == 4);
  CHECK(real(made, "final_loss") == 2.5);
  CHECK(real(made, "best_loss") == 2);
  CHECK(real(made, "time_mean") == 2);
  CHECK(real(made, "time_high") == doctest::Approx(2 + 12.706205).epsilon(1e-6));  // two runs: one degree of freedom
  CHECK(text(made, "state_digest") == "x");
  CHECK(made.store.attributes.at("by") == "stage");
  const metric::Table& curve = made.store.curves.at("1");
  CHECK(curve.find("loss")->reals() == std::vector<double>{4.5, 2.5});
  CHECK(curve.find("loss_min")->reals() == std::vector<double>{4, 2});
  CHECK(curve.find("loss_max")->reals() == std::vector<double>{5, 3});
  rule.by = {"stage", "state_digest"};
  CHECK(text(summary_of(runs, rule), "condition", 1) == "stage=2 state_digest=y");
  rule.by = {"stagee"};
  CHECK_THROWS_WITH_AS(summary_of(runs, rule), "no run has an attribute 'stagee', did you mean 'stage'?", Error);
}

TEST_CASE("outliers are left out only when asked, and the mean is then of the rest") {
  const std::string runs = "run\tstep\titeration_time\na\t1\t1\na\t2\t1\na\t3\t1.1\na\t4\t0.9\na\t5\t6\n";
  SummaryRule rule = no_warmup();
  CHECK(real(summary_of(runs, rule), "time_mean") == 2);
  rule.timing.outliers = Outliers::far_out;
  CHECK(real(summary_of(runs, rule), "time_mean") == 1);
  rule.timing.outliers = Outliers::above_p99;
  CHECK(real(summary_of(runs, rule), "time_points") == 4);
}

TEST_CASE("a restart replaces what it repeats; ranks and records of one step are joined") {
  const std::string restarted = "run\tstep\tloss\na\t1\t5\na\t2\t4\na\t3\t3\na\t2\t4.5\na\t3\t2\n";
  const Summary made = summary_of(restarted);
  CHECK(real(made, "points") == 3);
  CHECK(real(made, "mean_loss") == doctest::Approx(11.5 / 3));
  const Summary ranks =
      summary_of("run\tstep\tloss\tpeak_mem\trank\na\t1\t2\t10\t1\na\t1\t5\t20\t0\na\t2\t4\t5\t0\na\t2\t1\t30\t1\n");
  CHECK(real(ranks, "points") == 2);
  CHECK(real(ranks, "final_loss") == 4);
  CHECK(real(ranks, "peak_mem") == 30);
  const Summary joined = summary_of("run\tstep\tloss\tvalid_loss\na\t1\t5\t\na\t1\t\t6\na\t2\t4\t\n");
  CHECK(real(joined, "points") == 2);
  CHECK(real(joined, "valid_loss") == 6);
  const Summary epochs = summary_of("run\tepoch\tstep\tloss\na\t1\t1\t5\na\t1\t2\t4\na\t2\t1\t3\na\t2\t2\t2\n");
  CHECK(real(epochs, "points") == 4);
}

TEST_CASE("the bootstrap of the mean time counts each run once, however many points it has") {
  SummaryRule rule = no_warmup();
  rule.by = {"c"};
  std::string text, records = "run\tstep\titeration_time\n";
  for (int run = 0; run < 8; ++run) {
    const std::string name = "r" + std::to_string(run);
    text += "#@ " + name + " c=x\n";
    const bool is_long = run < 4;  // many short steps, or few long ones
    for (int step = 1; step <= (is_long ? 300 : 20); ++step)
      records += name + "\t" + std::to_string(step) + "\t" + (is_long ? "1" : "2") + "\n";
  }
  const Summary made = summary_of(text + records, rule);
  CHECK(real(made, "time_mean") == 1.5);
  // Of eight draws of 1 or 2, one in fifty has fewer than two of a kind.
  CHECK(real(made, "time_mean_low") == 1.125);
  CHECK(real(made, "time_mean_high") == 1.875);
}

TEST_CASE("further figures of one run, by hand") {
  SummaryRule rule = no_warmup();
  rule.target = 2;
  const Summary made = summary_of(
      "#@ a world_size=4\n#@ a model.parameters=100\n#@ a zero_stage=2\n#@ a dtype=bf16\n"
      "run\tstep\tloss\titeration_time\ttokens\na\t10\t4\t1\t8\na\t20\t2\t2\t8\na\t40\t2\t3\t8\n",
      rule);
  CHECK(real(made, "time_min") == 1);
  CHECK(real(made, "time_q90") == doctest::Approx(2.8));
  CHECK(real(made, "time_max") == 3);
  CHECK(real(made, "time_mad") == doctest::Approx(1.4826));
  CHECK(real(made, "time_mean_low") >= 1);
  CHECK(real(made, "time_mean_low") < 2);
  CHECK(real(made, "time_mean_high") > 2);
  CHECK(real(made, "warmup_points") == 0);
  CHECK(real(made, "loss_area") == doctest::Approx((10 * 3 + 20 * 2) / 30.0));
  CHECK(real(made, "steps_to_target") == 20);
  CHECK(made.store.summary->find("final_loss_std")->absent(0));
  CHECK(made.store.summary->find("loss_spread")->absent(0));
  CHECK(real(made, "time_total") == 10 * 1 + 10 * 2 + 20 * 3);
  CHECK(real(made, "tokens_per_second_q05") == doctest::Approx(8.0 / 3 + 0.1 * (8.0 / 2 - 8.0 / 3)));
  CHECK(real(made, "tokens_per_step") == 8);
  CHECK(real(made, "world_size") == 4);
  CHECK(real(made, "ideal_mem") == 2 * 100 + 14 * 100 / 4);
  CHECK(made.store.summary->find("scaling_efficiency")->absent(0));
  CHECK(made.store.attributes.at("target") == "2");
}

TEST_CASE("the floor under memory, by stage and type") {
  const auto ideal = [](const char* stage, const char* dtype) {
    return real(summary_of(std::string("#@ a model.parameters=8\n#@ a world_size=4\n#@ a zero_stage=") + stage +
                           "\n#@ a dtype=" + dtype + "\n"),
                "ideal_mem");
  };
  CHECK(ideal("0", "float32") == 16 * 8);
  CHECK(ideal("1", "float32") == 8 * 8 + 8 * 8 / 4);
  CHECK(ideal("2", "float32") == 4 * 8 + 12 * 8 / 4);
  CHECK(ideal("3", "float32") == 16 * 8 / 4);
  CHECK(ideal("0", "fp16") == 16 * 8);
  CHECK(ideal("1", "fp16") == 4 * 8 + 12 * 8 / 4);
  CHECK(ideal("3", "fp16") == 16 * 8 / 4);
  CHECK(metric::is_absent(ideal("4", "fp16")));
  CHECK(metric::is_absent(ideal("1", "int8")));
}

TEST_CASE("scaling is per rank, beside the fewest ranks of the same setup") {
  const Summary made = summary_of(
      "#@ one world_size=1\n#@ two world_size=2\n#@ three world_size=2\n#@ three zero_stage=3\n"
      "run\tstep\titeration_time\ttokens\ntwo\t1\t1\t150\none\t1\t1\t100\nthree\t1\t1\t100\n",
      no_warmup());
  CHECK(text(made, "condition", 1) == "two");
  CHECK(real(made, "scaling_efficiency", 0) == 1);
  CHECK(real(made, "scaling_efficiency", 1) == 0.75);
  CHECK(made.store.summary->find("scaling_efficiency")->absent(2));
}

TEST_CASE("outliers that are left out are counted and said") {
  const std::string runs = "run\tstep\titeration_time\na\t1\t1\na\t2\t1\na\t3\t1.1\na\t4\t0.9\na\t5\t6\n";
  SummaryRule rule = no_warmup();
  const Summary kept = summary_of(runs, rule);
  CHECK(real(kept, "time_outliers") == 1);
  CHECK(real(kept, "time_removed") == 0);
  rule.timing.outliers = Outliers::far_out;
  const Summary made = summary_of(runs, rule);
  CHECK(real(made, "time_removed") == 1);
  CHECK(made.warnings == std::vector<std::string>{"1 of 5 timings left out as outliers"});
  CHECK(made.store.attributes.at("outliers") == "mad: 1 of 5 timings left out");
}

TEST_CASE("no runs at all are an error") {
  CHECK_THROWS_WITH_AS(summary_of(""), "no runs in the input: nothing to aggregate", Error);
}

}  // namespace zs::stat
