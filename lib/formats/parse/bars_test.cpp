// SPDX-License-Identifier: Apache-2.0
// Progress bars, which give steps and times: the Trainer's of Hugging Face, Lightning's, tqdm's.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "parse/outcome_test.hpp"

namespace zs::parse {
namespace {

/// A bar of the Trainer at a step of `total`.
std::string bar(int step, int total, const std::string& rest) {
  return "\r  9%|#  | " + std::to_string(step) + "/" + std::to_string(total) + " [" + rest + "]";
}
/// The loss, written through the bar, which is drawn again behind it.
std::string loss(const std::string& epoch, int step, int total, const std::string& rest) {
  return "\r      \r{'loss': '2.5', 'epoch': '" + epoch + "'}\n" + bar(step, total, rest);
}

TEST_CASE("huggingface: the bar behind a loss has its step, the one in front may be old") {
  const Outcome fast =
      outcome_of(bar(0, 600, "00:00<?, ?it/s") + bar(37, 600, "00:00<00:02, 250it/s") +
                 loss("0.5", 50, 600, "00:00<00:02, 250it/s") + bar(74, 600, "00:00<00:02, 250it/s") +
                 loss("1", 100, 600, "00:00<00:02, 250it/s") + bar(149, 600, "00:00<00:02, 250it/s") +
                 "\r   \r{'eval_loss': '2', 'epoch': '1.5'}\n" + bar(150, 600, "00:00<00:02, 250it/s"));
  CHECK(fast.out.values.at("step") == std::set<std::string>{"50", "100", "150"});
  CHECK(fast.out.values.at("epochs") == std::set<std::string>{"0.5", "1", "1.5"});
  CHECK(times(fast) == std::set<std::string>{"0.00400000"});
  CHECK(fast.stats.faulty == 0);
  // Losses that come late and in a heap have the bar in front of them, and those behind it are counted by epochs.
  const Outcome late =
      outcome_of(bar(10, 60, "00:05<00:25, 2.00it/s") + "{'loss': 2.5, 'epoch': 0.5}\n{'loss': 2.4, 'epoch': 1.0}\n" +
                 bar(22, 60, "00:11<00:25, 2.00it/s"));
  CHECK(late.out.values.at("step") == std::set<std::string>{"10", "20"});
}

/// The bar, cleared and drawn again behind what was written through it.
std::string again(int step, int total, const std::string& below = "") {
  return "\n" + std::string(46, ' ') + "\n" + below + bar(step, total, "00:01<00:01, 9.0it/s") + "\n";
}

TEST_CASE("huggingface: the n-th line belongs to the n-th bar that was drawn again") {
  // Of torchrun --tee: lines come before, behind and far behind the bar, which stands in lines of its own.
  const Outcome tee =
      outcome_of(bar(2, 12, "00:00<00:01, 9.0it/s") + "[default0]:{'loss': '8', 'epoch': '0.5'}\n" + again(2, 12) +
                 bar(3, 12, "00:00<00:01, 9.0it/s") + "[default0]:{'loss': '7', 'epoch': '1'}\n" +
                 bar(4, 12, "00:00<00:01, 9.0it/s") + again(4, 12) + bar(5, 12, "00:00<00:01, 9.0it/s") + again(6, 12) +
                 bar(7, 12, "00:00<00:01, 9.0it/s") + "\n" + again(8, 12) +
                 "{'loss': '6', 'epoch': '1.5'}\n{'loss': '5', 'epoch': '2'}\n" + again(12, 12) +
                 "{'loss': '4', 'epoch': '3'}\n{'train_runtime': 9, 'epoch': 3.0}\n");
  CHECK(tee.out.values.at("step") == std::set<std::string>{"2", "4", "6", "8", "12"});
  CHECK(tee.stats.faulty == 0);
  // Text of others was written between the bar and the loss, or through the bar.
  const Outcome between =
      outcome_of(bar(1, 20, "00:00<00:01, 9.0it/s") + "\na warning\n\r      \r" + "{'loss': '8', 'epoch': '0.2'}\n" +
                 bar(2, 20, "00:00<00:01, 9.0it/s") + "\r      \ra warning\n" + bar(4, 20, "00:00<00:01, 9.0it/s") +
                 "\r      \r" + "{'loss': '7', 'epoch': '1'}\n" + bar(10, 20, "00:00<00:01, 9.0it/s"));
  CHECK(between.out.values.at("step") == std::set<std::string>{"2", "10"});
}

TEST_CASE("huggingface: a bar below that of the training is another one, even with as many steps") {
  const auto nested = [](int step) { return "\n" + bar(step, 4, "00:00<00:01, 9.0it/s") + "\x1b[A"; };
  const Outcome same = outcome_of(bar(0, 4, "00:00<?, ?it/s") + bar(2, 4, "00:00<00:01, 9.0it/s") +
                                  "\r      \r{'loss': '8', 'epoch': '0.5'}\n" + bar(2, 4, "00:00<00:01, 9.0it/s") +
                                  nested(0) + "\r      \r\n\r      \r\x1b[A{'eval_loss': '7', 'epoch': '0.5'}\n" +
                                  bar(2, 4, "00:00<00:01, 9.0it/s") + nested(4) + "\n\r      \r\x1b[A" +
                                  bar(3, 4, "00:01<00:01, 9.0it/s") + bar(4, 4, "00:01<00:01, 9.0it/s") +
                                  "\r      \r{'loss': '6', 'epoch': '1'}\n" + bar(4, 4, "00:01<00:01, 9.0it/s"));
  CHECK(same.out.values.at("step") == std::set<std::string>{"2", "4"});
  CHECK(same.out.values.at("loss") == std::set<std::string>{"8", "6"});
  CHECK(same.stats.records == 3);
}

TEST_CASE("huggingface: behind a resume or an evaluation the rate of the bar is no time of a step") {
  const Outcome resumed = outcome_of(bar(0, 40, "00:00<?, ?it/s") + bar(21, 40, "00:00<00:00, 150it/s") +
                                     loss("2.4", 24, 40, "00:06<00:01, 140it/s") + bar(27, 40, "00:12<00:01, 120it/s") +
                                     loss("2.8", 28, 40, "00:18<00:01, 120it/s"));
  CHECK(resumed.out.values.at("step") == std::set<std::string>{"24", "28"});
  CHECK(times(resumed) == std::set<std::string>{"3.00000"});  // 12 s for 4 steps
  const Outcome evaluated =
      outcome_of(bar(1, 40, "00:01<00:40, 1.00s/it") + loss("0.1", 2, 40, "00:02<00:40, 1.00s/it") +
                 bar(1, 9, "00:01<00:40, 5.00s/it") + "\r   \r{'eval_loss': 2.0, 'epoch': 0.1}\n" +
                 bar(2, 40, "00:29<00:40, 9.00s/it") + bar(3, 40, "00:30<00:40, 9.00s/it") +
                 loss("0.2", 4, 40, "00:31<00:40, 8.00s/it"));
  CHECK(evaluated.out.values.at("step") == std::set<std::string>{"2", "4"});
  CHECK(times(evaluated) == std::set<std::string>{"1.00000"});
}

TEST_CASE("huggingface: a text among the values is one, and no fault") {
  const Outcome swift =
      outcome_of("{'loss': 2.5, 'epoch': 0.01, 'global_step/max_steps': '5/1000', 'percentage': '0.50%'}\n");
  CHECK(swift.stats.faulty == 0);
  CHECK(swift.out.values.at("step") == std::set<std::string>{"5"});
  CHECK(swift.out.values.at("expected_steps=") == std::set<std::string>{"1000"});
}

/// Bars of tqdm with a title, drawn over each other.
std::string drawn(const std::string& title, const std::vector<std::string>& states) {
  std::string text = "\r" + title + "  0%|   | 0/2 [00:00<?, ?it/s]";
  for (const std::string& state : states)
    text += "\r" + title + " 50%|#  | " + state.substr(0, 3) + " [00:01<00:01, 1.0it/s" + state.substr(3) + "]";
  return text + "\n";
}

TEST_CASE("lightning: nan and inf are padded as numbers are") {
  for (const auto& [padded, value] :
       {std::pair("nan.0", "nan"), {"nan", "nan"}, {"inf.0", "inf"}, {"-inf.", "-inf"}, {"-inf", "-inf"}}) {
    CAPTURE(padded);
    const Outcome out = outcome_of(drawn("Epoch 0:", {std::string("1/2, v_num=2, train_loss=") + padded}));
    CHECK(out.stats.faulty == 0);
    CHECK(out.out.values.at("loss") == std::set<std::string>{value});
  }
  CHECK(outcome_of(drawn("Epoch 0:", {"1/2, train_loss=nan.05"})).stats.faulty == 1);
}

TEST_CASE("lightning: a bar that begins anew shows the metrics of the one before it") {
  const Outcome out = outcome_of(drawn("Epoch 0:", {"1/2, v_num=2", "1/2, train_loss=0.5", "2/2, train_loss=0.5",
                                                    "2/2, train_loss=0.4", "0/2, train_loss=0.4"}) +
                                 "\rEpoch 1:  0%|  | 0/2 [00:00<?, ?it/s, train_loss=0.4]" +
                                 drawn("Epoch 1:", {"1/2, train_loss=0.3"}));
  CHECK(out.stats.records == 3);
  CHECK(out.out.values.at("step") == std::set<std::string>{"1", "2", "3"});
  CHECK(out.out.values.at("loss") == std::set<std::string>{"0.5", "0.4", "0.3"});
}

TEST_CASE("lightning: bars that name no epoch are counted on, and those that lag show the next batch's metrics") {
  const std::string more =
      drawn("", {"1/2, loss=0.5", "2/2, loss=0.4"}) + drawn("", {"1/2, loss=0.3", "2/2, loss=0.2"});
  const Outcome plain = outcome_of(more);
  CHECK(plain.stats.records == 4);
  CHECK(plain.out.values.at("step") == std::set<std::string>{"1", "2", "3", "4"});
  // for batch in bar: ... bar.set_postfix(loss=...)
  const Outcome lagging = outcome_of(drawn("", {"0/2, loss=0.5", "1/2, loss=0.5", "1/2, loss=0.4", "2/2, loss=0.4"}) +
                                     drawn("", {"0/2, loss=0.3", "1/2, loss=0.3", "1/2, loss=0.2", "2/2, loss=0.2"}));
  CHECK(lagging.stats.records == 4);
  CHECK(lagging.out.values.at("step") == std::set<std::string>{"1", "2", "3", "4"});
  CHECK(lagging.out.values.at("loss") == std::set<std::string>{"0.5", "0.4", "0.3", "0.2"});
}

}  // namespace
}  // namespace zs::parse
