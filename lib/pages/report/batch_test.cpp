// SPDX-License-Identifier: Apache-2.0
#include "report/batch.hpp"

#include <doctest/doctest.h>

#include "figure/figure.hpp"
#include "metric/unit.hpp"
#include "plot/figures.hpp"
#include "plot/sample_test.hpp"
#include "report/render.hpp"

namespace zs::report {
namespace {

Document written(const metric::Store& store) {
  const Findings found = findings(store, "s.h5");
  return batch(store, found, "s.h5", "");
}
/// The summary made again, after a change to the runs.
metric::Store again(metric::Store store) { return stat::summarize({std::move(store.runs), {}, {}, {}, {}}, {}).store; }
std::string verdict(const metric::Store& store) { return written(store).verdict_text.plain(); }
bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("equal digests are the first paragraph, and the digest is printed") {
  const metric::Store store = plot::sample_batch();
  const Document document = written(store);
  CHECK(document.verdict == Verdict::good);
  CHECK(document.verdict_text.plain() ==
        "All 6 conditions end with the same state digest, f3a1c09b5d7e42886b0c9d1f2e3a4b5c: their parameters are the "
        "same to the last bit.");
  CHECK(document.title == "Comparison of 6 conditions: gpt2");
}

TEST_CASE("one other digest is a no, with the step where losses part") {
  metric::Store store = plot::sample_batch();
  store.runs[2].attributes["state_digest"] = "0123";
  store.runs[2].records.find("loss")->reals()[9] += 1e-12;
  const Document document = written(again(store));
  CHECK(document.verdict == Verdict::bad);
  CHECK(document.label == "Different bits");
  CHECK(says(document.verdict_text.plain(), "z3_baseline ends with 0123. Losses first differ at step 10;"));
}

TEST_CASE("losses that are equal beside a norm that is not are not said to differ") {
  metric::Store store = plot::sample_batch();
  store.runs.resize(2);
  for (std::size_t i = 0; i < 2; ++i) {
    metric::Table& records = store.runs[i].records;
    records.find("loss")->reals() = store.runs[0].records.find("loss")->reals();
    records.column("grad_norm").reals().assign(records.rows(), 1.0 + static_cast<double>(i));
  }
  const std::string text = to_markdown(written(again(store)), {});
  CHECK(says(text, "as logged; what differs is grad\\_norm from step "));
  CHECK(!says(text, "first differ at"));
}

TEST_CASE("digests of different trainings are not compared") {
  metric::Store store = plot::sample_batch();
  store.runs[2].attributes["state_digest"] = "0123";
  store.runs[2].attributes["seed"] = "43";
  const Document document = written(store);
  CHECK(document.verdict == Verdict::open);
  CHECK(says(document.verdict_text.plain(),
             "Runs that train the same thing end with the same state digest, and so with the same bits: "
             "2 groups that differ in seed (42 and 43), of which 1 with a single run."));
}

TEST_CASE("conditions over several seeds are compared seed by seed") {
  metric::Store store = plot::sample_batch();
  for (std::size_t i = 0; i < 6; ++i) {
    store.runs[i].attributes["seed"] = i < 3 ? "1" : "2";
    store.runs[i].attributes["state_digest"] = i < 3 ? "aa" : "bb";
  }
  CHECK(written(store).verdict == Verdict::good);
  store.runs[4].attributes["state_digest"] = "aa";
  // Losses of other seeds differ from the first step on; those of one class do from its fifth.
  for (std::size_t i = 3; i < 6; ++i) store.runs[i].records.find("loss")->reals()[0] += 1;
  store.runs[4].records.find("loss")->reals()[4] += 1;
  const Document document = written(again(std::move(store)));
  CHECK(document.verdict == Verdict::bad);
  CHECK(says(
      document.verdict_text.plain(),
      "with seed 2, z1_deepcompile and z3_deepcompile end with bb; z2_deepcompile ends with aa. Losses first differ "
      "at step 5;"));
}

TEST_CASE("differences inside the envelope of repeated runs are called noise, others are placed") {
  plot::Sample sample;
  sample.digests = false;
  sample.identical = false;
  metric::Store store = plot::sample_batch(sample);
  metric::Table& pairs = store.tables["divergence"];
  pairs.find("envelope")->reals()[0] = 0.5;
  CHECK(says(verdict(store), "by no more than chance makes of repeated runs, which differ by up to 0.5 nats/token."));
  pairs.find("first_outside")->integers()[0] = 30;
  pairs.find("outside_difference")->reals()[0] = 0.25;
  pairs.find("outside_spread")->reals()[0] = 0.125;
  CHECK(
      says(verdict(store),
           "More than chance makes of repeated runs: z2_baseline leaves z1_baseline at step 30 (by 0.25 nats/token in "
           "the mean of a tenth of the steps, where repeated runs vary by 0.125)."));
}

TEST_CASE("of a model that takes images a report says nats and images, and nothing of tokens") {
  plot::Sample sample;
  sample.identical = sample.digests = false;
  metric::Store store = plot::sample_batch(sample);
  for (metric::Run& run : store.runs) {
    run.records.find("tokens")->name = metric::kImages;
    metric::set_loss_unit(run.records.columns);
    for (const auto& [name, value] : {std::pair{"train_loss_epoch.2", "3.5"},
                                      {"train_loss_epoch.10", "2.25"},
                                      {"epoch_time", "90"},
                                      {"total_epochs", "1.5"},
                                      {"model_size_M", "85.8"}})
      run.attributes[name] = value;
  }
  store = again(std::move(store));
  const std::string text = to_markdown(written(store), {});
  CHECK(says(text, " nats (step "));
  CHECK(says(text, "images (k/s)"));
  CHECK(says(text, "an epoch (s)"));
  CHECK(says(text, "mean loss of epoch"));
  CHECK(text.find("| 2 |") < text.find("| 10 |"));
  CHECK(says(text, "16 images"));
  CHECK(says(text, "85.8"));
  CHECK_FALSE(says(text, "token"));
  const std::vector<Condition> conditions = summary::conditions(store, "s.h5");
  CHECK(plot::loss_figure(conditions, {}).panels[0].y_label == "loss (nats)");
  CHECK(plot::difference_figure(conditions, {}).panels[0].y_label == "loss minus that of z1_baseline (nats)");
  CHECK(plot::throughput_figure(conditions, {}).panels[0].x_label == "images (k/s)");
}

TEST_CASE("ranks and accumulation may differ as long as the global batch does not") {
  metric::Store store = plot::sample_batch();
  store.runs[2].attributes["state_digest"] = "0123";
  store.runs[2].attributes["world_size"] = "4";
  store.runs[2].attributes["gradient_accumulation_steps"] = "2";
  CHECK(written(store).verdict == Verdict::bad);
  store.runs[2].attributes["gradient_accumulation_steps"] = "4";
  CHECK(written(store).verdict == Verdict::open);
}

TEST_CASE("a failed condition is named in verdict, table and data quality, with what is known") {
  plot::Sample sample;
  sample.failing = "z3_deepcompile";
  sample.absent = "z2_deepcompile";
  const metric::Store store = plot::sample_batch(sample);
  const Document document = written(store);
  CHECK(document.verdict == Verdict::bad);
  const std::string text = document.verdict_text.plain();
  CHECK(says(text,
             "2 of 6 conditions did not complete: z2_deepcompile FAILED (exit code 9) before its first metric line and "
             "z3_deepcompile FAILED (exit code 9) at step 30 of 100. All 4 conditions that did not fail end with the "
             "same state digest"));
  const std::string markdown = to_markdown(document, {});
  CHECK(says(markdown, "| `z2_deepcompile` | **FAILED** | - | - | - |"));
  CHECK(says(markdown, "- `z2_deepcompile`: **FAILED (exit code 9) before its first metric line**; it has no values."));
}

TEST_CASE("without digests nothing is called the same, and one run each is called one run each") {
  plot::Sample sample;
  sample.digests = false;
  const std::string first = verdict(plot::sample_batch(sample));
  INFO(first);
  CHECK(says(first, "Their losses are equal, as logged, at every one of 100 steps. "));
  CHECK(
      says(first,
           " No condition logged a state digest, so the report cannot say whether the parameters are the same bits."));
  sample.identical = false;
  CHECK(says(verdict(plot::sample_batch(sample)),
             "with one run of each condition nothing here tells noise from a fault"));
}

TEST_CASE("a loss that is not finite is the largest difference") {
  plot::Sample sample;
  sample.digests = false;
  metric::Store store = plot::sample_batch(sample);
  store.runs[1].records.find("loss")->reals()[49] = figure::kNone;
  store = again(store);
  store.summary->find("status")->texts()[1] = "COMPLETE";  // as a tool might say that does not look
  const Findings found = findings(store, "s");
  REQUIRE(found.losses.largest);
  CHECK(found.losses.largest->step == 50);
  CHECK_FALSE(found.losses.equal);
  CHECK(says(verdict(store), "one is not finite"));
}

TEST_CASE("the fastest is named only where each ran twice and the intervals part") {
  metric::Store store = plot::sample_batch();
  CHECK(
      says(time_sentence(findings(store, "s")).plain(),
           "z1_deepcompile (508.1 ms) has the smallest mean iteration time, 10 % less than the next, z1_baseline; one "
           "run of each cannot tell, so the data do not show which is fastest."));
  CHECK(says(to_markdown(written(store), {}),
             "**For time:** none; a difference between single runs is not a reason to choose."));
  const std::size_t single = store.runs.size();
  const auto repeat = [&](std::size_t i) {
    metric::Run run = store.runs[i];
    run.attributes["repetition_of"] = run.name;
    run.name += "_again";
    for (double& time : run.records.find("iteration_time")->reals()) time *= 1.001;
    store.runs.push_back(std::move(run));
  };
  for (std::size_t i = 0; i + 1 < single; ++i) repeat(i);
  store = again(store);
  CHECK(
      says(time_sentence(findings(store, "s")).plain(), "z1_baseline; not every condition ran twice, so the data do"));
  repeat(single - 1);
  store = again(store);
  CHECK(says(time_sentence(findings(store, "s")).plain(), "z1_deepcompile (508.3 ms) is the fastest: 10 % less time"));
  CHECK(says(to_markdown(written(store), {}), "**For time:** `z1_deepcompile`. The intervals support it."));
  metric::Store ranks = store;  // two logs each, of one run
  for (metric::Run& run : ranks.runs) run.attributes["run"] = "1";
  CHECK(says(time_sentence(findings(again(ranks), "s")).plain(), "; one run of each cannot tell, so the data do not"));
  store.summary->find("time_high")->reals()[3] = 0.6;
  CHECK(says(time_sentence(findings(store, "s")).plain(),
             "overlaps that of z1_baseline and z2_deepcompile: the data do not show which is fastest"));
  CHECK(says(to_markdown(written(store), {}), "**For time:** none; the intervals do not support a choice between"));
}

TEST_CASE("what the records do not say is said to be missing, and nothing is assumed") {
  plot::Sample sample;
  sample.attributes = false;
  const std::string markdown = to_markdown(written(plot::sample_batch(sample)), {});
  CHECK(says(
      markdown,
      "The records do not say: the model, the data, the number format, the number of ranks, the batch size, the seed, "
      "how many steps were expected, the hardware and the revision of the code."));
  CHECK_FALSE(says(markdown, "gpt2"));
}

TEST_CASE("a condition of unknown completeness keeps the verdict open") {
  metric::Store store = plot::sample_batch();
  store.summary->find("status")->texts()[1] = "UNKNOWN";
  const Document document = written(store);
  CHECK(document.verdict == Verdict::open);
  CHECK(says(document.verdict_text.plain(), "Whether z2_baseline is complete is not known"));
}

TEST_CASE("every number leads to its run, file and line") {
  const Document document = written(plot::sample_batch());
  const auto find = [&](const std::string& what) {
    for (const Origin& origin : document.origins) {
      if (origin.what == what) return origin;
    }
    return Origin{};
  };
  const Origin final_loss = find("final_loss of z2_baseline");
  CHECK(final_loss.place() == "z2_baseline.log:240");
  CHECK(final_loss.step == "100");
  CHECK(final_loss.value == "2.2061795786173186");
  CHECK(find("time_mean of z2_baseline").place() == "z2_baseline.log:52-240");
  CHECK(find("peak_mem of z1_baseline").value == "3400000000");
}

TEST_CASE("names cannot break out of Markdown or HTML, and the page asks for nothing") {
  metric::Store store = plot::sample_batch();
  const std::string name = "a|b`c<script src=http://x.y/>";
  store.summary->find("condition")->texts()[0] = name;
  store.runs[0].name = name;
  store.curves[name] = store.curves["z1_baseline"];
  const Document document = written(store);
  CHECK(says(to_markdown(document, {}), "| ``  a\\|b`c<script src=http://x.y/>  ``") == false);
  CHECK(says(to_markdown(document, {}), "| `` a\\|b`c<script src=http://x.y/> `` |"));
  const std::string html = to_html(document, figure::Theme());
  CHECK_FALSE(says(html, "<script src"));
  CHECK_FALSE(says(html, "href=\"http"));
  CHECK_FALSE(says(html, "src=\""));
  CHECK_FALSE(says(html, "url("));
  CHECK_FALSE(says(html, "@import"));
  CHECK(says(html, "default-src 'none'"));
}

}  // namespace zs::report
