// SPDX-License-Identifier: Apache-2.0
// What holds for every dialect: values survive, nothing of a cut line passes for a value, each line is accounted for.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "parse/outcome_test.hpp"

namespace zs::parse {
namespace {

/// Lines of a dialect, '@' standing for a value, and the column or attribute that the value becomes. An attribute ends
/// in '='. The lines in front of the last one are what it needs.
struct Sample {
  std::string_view dialect, before, line, becomes;
};
const std::vector<Sample> kSamples = {
    {"reference", "", "Epoch 1, Step 40, Loss: @ sync: True time: 0.48 alloc_mem: 28307113472 peak_mem: 50064946688",
     "loss"},
    {"reference", "", "Epoch 1, Step 40, Loss: 2.5 sync: True time: @ alloc_mem: 28307113472 peak_mem: 50064946688",
     "iteration_time"},
    {"reference", "",
     "gpt2 ds=True np=8 batch_size=1 zero_stage=3 compile_time=58.1 iteration time: @ alloc_mem: 1234 peak_mem: 5678",
     "summary.iteration_time="},
    {"deepspeed", "", "[2024-04-21 02:45:40,722] [Rank 0] step=30, skipped=17, lr=[@], mom=[(0.9, 0.999)]",
     "learning_rate"},
    {"deepspeed", "",
     "[timer.py:260:stop] epoch=0/micro_step=3/global_step=3, RunningAvgSamplesPerSec=74.6, CurrSamplesPerSec=@, "
     "MemAllocated=4.75GB, MaxMemAllocated=15.59GB",
     "samples_per_second"},
    {"huggingface", "", "{'loss': @, 'grad_norm': 1.25, 'learning_rate': 0.0002, 'epoch': 0.04}", "loss"},
    {"huggingface", "", "{'eval_loss': @, 'eval_runtime': 12.3, 'epoch': 0.04}", "valid_loss"},
    {"torchtitan", "",
     "[titan] 2025-06-01 12:00:00,123 - root - INFO - step: 10  loss:  @  grad_norm:  1.0613  memory:  1.03GiB(1.09%)  "
     "tps: 12,345  tflops: 12.34  mfu: 3.95%",
     "loss"},
    {"nanogpt", "", "iter 100: loss @, time 135.12ms, mfu 12.34%", "loss"},
    {"nanogpt", "", "step 250: train loss 2.4012, val loss @", "valid_loss"},
    {"llm.c", "",
     "step    2/32000 | loss @ (+nanz)| norm 43.5996 (+nanz)| lr 1.71e-06 | 2747.19 ms | 47.4% bf16 MFU | 381690 tok/s",
     "loss"},
    {"llm.c",
     "step    2/32000 | loss 10.5 (+nanz)| norm 43.5 (+nanz)| lr 1.71e-06 | 2747.1 ms | 4% bf16 MFU | 3 tok/s\n",
     "val loss @", "valid_loss"},
    {"llm.c", "", "s:10 trl:@ lr:0.000003 norm:13.12", "loss"},
    {"llm.c", "", "s:250 tel:@", "valid_loss"},
    // Megatron-LM core_r0.12 (training_log of megatron/training/training.py).
    {"megatron", "",
     " [2025-06-01 12:00:00] iteration        5/     100 | consumed samples:           40 | elapsed time per iteration "
     "(ms): "
     "1234.5 | learning rate: 1.500000E-04 | global batch size:     8 | lm loss: @ | loss scale: 1.0 | grad norm: "
     "2.345 | "
     "number of skipped iterations:   0 | number of nan iterations:   0 |",
     "loss"},
    {"megatron", "", " validation loss at iteration 100 | lm loss value: @ | lm loss PPL: 4.084491E+02 | ",
     "valid_loss"},
    {"nanogpt", "", "250 train @", "loss"},
    // Lightning 2.5 (pytorch/callbacks/progress/tqdm_progress.py), and 1.0, which draws its own loss.
    {"lightning", "", "Epoch 0:  22%|██▏       | 4/18 [00:17<01:02,  4.47s/it, train_loss=@, v_num=0]", "loss"},
    {"lightning", "", "Steps:  10%|█  | 50/500 [00:10<01:30,  5.00it/s, lr=1e-5, step_loss=@]", "loss"},
    // Keras 2.15 (utils/generic_utils.py).
    {"lightning", "Epoch 1/5\n", "469/469 [======] - 2s 4ms/step - loss: @ - accuracy: 0.8982", "loss"},
    {"lightning", "", "Epoch 0:  93% 1599/1702 [12:52<00:49,  2.06it/s, loss=@, v_num=0, acc=0.149]", "loss"},
    // verl 0.2 (utils/logger/aggregate_logger.py) and 0.5 (NumPy's numbers).
    {"verl", "", "step:10 - train/loss:@ - train/lr(1e-3):0.001", "loss"},
    {"verl", "", "(TaskRunner pid=17) step:1 - actor/grad_norm:np.float64(@) - timing_s/step:123.456", "grad_norm"},
    {"json", "", R"({"train/loss": @, "train/global_step": 40, "_step": 3, "_runtime": 61.4})", "loss"},
    {"json", "", R"(2021-03-08 12:31:36 | INFO | train_inner | {"epoch": 1, "loss": "@", "num_updates": "1"})", "loss"},
    {"json", "", R"({"epoch": 1, "train_loss": @, "n_parameters": 7})", "loss"},
    // Logging of MLPerf Training 4.1.
    {"mllog", "", R"(:::MLLOG {"key": "eval_error", "value": @, "metadata": {"samples_count": 7}})", "eval_error"},
    // Composer 0.20 (loggers/console_logger.py), OLMo 0.5 (train.py).
    {"paragraph", "[batch=20/100]:\n", "\t Train loss/train/total: @", "loss"},
    {"paragraph", "2025-01-01\thost0:0\tolmo.train:990\tINFO\t[step=10/90,epoch=0]\n", "    train/CrossEntropyLoss=@",
     "loss"},
    {"csv", "step,train_loss,learning_rate\n", "10,@,0.0003", "loss"},
    {"csv", "epoch;train_loss;val_loss\n", "10;@;0.0003", "loss"},
    {"zs", "", "Summary: epochs: 3 loss: @ steps: 120", "summary.loss="},
    {"zs", "", "run: learning_rate=@", "learning_rate="},
    {"launch", "", "Namespace(model_name='gpt2', learning_rate=@, compile=True)", "learning_rate="},
    {"launch", "", "NUM_NODES: 1 NGPUS_PER_NODE: 4 NUM_PROCESSES: 4", "gpus_per_node="},
    {"wandb", "wandb: Run summary:\n", "wandb:                          train/loss @", "wandb.summary.train/loss="},
    {"failure", "", "srun: error: node07: task 3: Exited with exit code 1", "error="},
    {"general", "", "step 5/12 loss @ lr 0.001 time 0.130s", "loss"},
    {"general", "", "step 5/12 loss 2.5 lr @ time 0.130s", "learning_rate"},
    // The ImageNet example of pytorch/examples.
    {"general", "", "Epoch: [0][ 5/100]\tTime  0.123 ( 0.456)\tLoss @ (4.5000e+00)\tAcc@1   5.00 (  4.10)", "loss"},
    // timm 1.0 (train.py), fairseq 0.12, ESPnet 202310, SpeechBrain 1.0, LitGPT 0.5, NeMo 2.0, a loop without steps.
    {"general", "", "Train: 0 [  50/1251 (  4%)]  Loss: @ (6.93)  Time: 0.410s,  624.39/s  (0.4s,  531.12/s)", "loss"},
    {"general", "", "epoch 001:    100 / 1234 loss=@, ppl=9468.2, num_updates=100, lr=1.25e-05", "loss"},
    {"general", "", "3epoch:train:1-50batch: iter_time=0.170, loss_ctc=151.22, loss=@, grad_norm=31.2", "loss"},
    {"general", "", "epoch: 1, lr: 1.00e+00 - train loss: @ - valid loss: 1.93, valid CER: 31.52", "loss"},
    {"general", "", "Epoch 1 | iter 4 step 1 | loss train: @, val: n/a | iter time: 412.10 ms (step)", "loss"},
    {"general", "", "Training epoch 0, iteration 1/99 | lr: 3e-07 | global_step: 1 | reduced_train_loss: @", "loss"},
    {"general", "", "loss: @ | lr: 5.56e-06 | grad_norm: 4.7373 | epoch: 0.03", "loss"},
    {"general", "", "[step 5] loss=@, lr=1e-3 | 120 ms", "loss"},
    // DeepSpeed 0.19.8 (runtime/pipe/engine.py).
    {"general", "", "steps: 10 loss: @ iter time (s): 0.123 samples/sec: 12.300", "loss"},
    {"general", "", "2025-06-01 12:00:00,123 INFO train: iteration 100 of 200, train loss = @, 7.5 it/s", "loss"},
    {"general", "", "step 100 | val loss: @ | ppl: 7.5", "valid_loss"},
    // MMEngine 0.10 (runner/log_processor.py); TensorFlow's LoggingTensorHook.
    {"general", "", "Iter(train) [ 50/1000]  lr: 1e-3  eta: 0:10:00  time: 0.5  memory: 1000  loss: @", "loss"},
    {"general", "", "INFO:tensorflow:loss = @, step = 7 (0.5 sec)", "loss"}};

std::string filled(std::string_view line, std::string_view value) {
  std::string text(line);
  const std::size_t at = text.find('@');
  return at == std::string::npos ? text : text.replace(at, 1, value);
}

TEST_CASE("each dialect is in the samples") {
  for (const Entry& entry : dialects())
    CHECK(std::any_of(kSamples.begin(), kSamples.end(), [&](const Sample& s) { return s.dialect == entry.name; }));
}

TEST_CASE("nan, inf, signs and exponents are values in every dialect") {
  for (const Sample& sample : kSamples) {
    if (sample.line.find('@') == std::string_view::npos) continue;
    for (const char* value : {"nan", "inf", "-inf", "1e-05", "-2.5E+3", "0.4812662601470947"}) {
      CAPTURE(sample.line);
      CAPTURE(value);
      const auto [out, stats] = outcome_of(std::string(sample.before) + filled(sample.line, value) + "\nother text\n");
      CHECK(stats.matched.count(std::string(sample.dialect)) == 1);
      CHECK(stats.faulty == 0);
      CHECK(out.values.count(std::string(sample.becomes)) == 1);
      CHECK(out.values.at(std::string(sample.becomes)).count(value) == 1);
    }
  }
}

/// Further values, of which the samples above have one each.
const std::vector<Sample> kFurther = {
    {"reference", "", "Epoch 1, Step 40, Loss: 2.5 sync: True time: 0.5 alloc_mem: @ peak_mem: 5", "alloc_mem"},
    {"reference", "", "Epoch 1, Step 40, Loss: 2.5 sync: True time: 0.5 alloc_mem: 7 peak_mem: @", "peak_mem"},
    {"reference", "", "Epoch 1, Step 40, Loss: @", "loss"},
    {"reference", "", "Epoch @, Step 40, Loss: 2.5", "epoch"},
    {"reference", "", "Epoch 1, Step @, Loss: 2.5", "step"},
    {"deepspeed", "", "[Rank 0] step=@, skipped=17, lr=[0.5], mom=[(0.9, 0.999)]", "step"},
    {"deepspeed", "", "[Rank 0] step=30, skipped=@, lr=[0.5], mom=[(0.9, 0.999)]", "skipped"},
    {"deepspeed", "", "[Rank 0] step=30, skipped=0, lr=[0.5, @], mom=[(0.9, 0.999)]", "learning_rate.1"},
    {"deepspeed", "",
     "[timer.py:260:stop] epoch=0/micro_step=4/global_step=5, RunningAvgSamplesPerSec=74.6, CurrSamplesPerSec=7.5, "
     "MemAllocated=@GB, MaxMemAllocated=15.59GB",
     "alloc_mem"},
    {"deepspeed", "[Rank 0] step=30, skipped=0, lr=[0.5], mom=[(0.9, 0.999)]\n",
     "[Rank 0] time (ms) | fwd: 66.11 | bwd: @ | step: 5.1", "time.bwd"},
    {"deepspeed", "", "[utils.py:782:see_memory_usage] MA @ GB         Max_MA 4.96 GB         CA 4.97 GB",
     "memory.alloc_mem="},
    {"huggingface", "", "{'loss': 2.5, 'grad_norm': @, 'learning_rate': 0.0002, 'epoch': 0.04}", "grad_norm"},
    {"huggingface", "", "{'loss': 2.5, 'grad_norm': 7.5, 'learning_rate': 0.0002, 'epoch': @}", "epochs"},
    {"huggingface", "", "{'loss': '@', 'grad_norm': '7.5', 'epoch': '0.04'}", "loss"},
    {"torchtitan", "", "step: 10  loss:  4.5  grad_norm:  @  memory:  1.03GiB(1.09%)  tps: 12,345", "grad_norm"},
    {"torchtitan", "", "step: 10  loss:  4.5  grad_norm:  1.5  memory:  @GiB(1.09%)  tps: 12,345", "peak_reserved_mem"},
    {"torchtitan", "", "step: 10  loss:  4.5  grad_norm:  1.5  memory:  1.5GiB(1.09%)  tps: 12,345  mfu: @%", "mfu"},
    {"torchtitan", "", "validate step: 10  loss:  @  memory:  1.03GiB(1.09%)  tps: 12,345", "valid_loss"},
    {"nanogpt", "", "iter 100: loss 2.5, time @ms, mfu 12.34%", "iteration_time"},
    {"nanogpt", "", "iter 100: loss 2.5, time 5ms, mfu @%", "mfu"},
    {"nanogpt", "", "iter @: loss 2.5, time 5ms, mfu 7%", "step"},
    {"nanogpt", "", "step 250: train loss @, val loss 2.5", "train_split_loss"},
    {"llm.c", "", "step 2/32 | loss 10.5 (+nanz)| norm @ (+nanz)| lr 1.71e-06 | 2747.19 ms | 4% bf16 MFU | 38 tok/s",
     "grad_norm"},
    {"llm.c", "", "step 2/32 | loss 10.5 (+nanz)| norm 4 (+nanz)| lr 1.71e-06 | @ ms | 4% bf16 MFU | 38 tok/s",
     "iteration_time"},
    {"llm.c", "", "step 10: train loss @ (took 1230.1 ms)", "loss"},
    {"llm.c", "", "step 10: train loss 4.5 (took @ ms)", "iteration_time"},
    {"megatron", "", " iteration        5/     100 | elapsed time per iteration (ms): @ | lm loss: 2.5 |",
     "iteration_time"},
    {"megatron", "", " iteration        5/     100 | elapsed time per iteration (ms): 5 | grad norm: @ |", "grad_norm"},
    {"megatron", "", "[Rank 0] (after 9 iterations) memory (MB) | allocated: @ | max allocated: 7.5 | reserved: 8.5",
     "memory.alloc_mem="},
    {"lightning", "", "Epoch 0: 5%|█| 4/18 [00:17<01:02,  4.47s/it, loss=2.5, acc=@]", "acc"},
    {"verl", "", "step:1 - perf/max_memory_allocated_gb:@ - timing_s/step:123.456", "peak_mem"},
    {"general", "", "step 5/12 loss 2.5 time @ms", "iteration_time"},
    {"general", "", "loss=@ step=5 lr=0.5", "loss"},
    {"json", "", R"({"train/loss": 2.5, "train/global_step": 40, "grad_norm": @})", "grad_norm"},
    {"json", "", R"({"train/loss": @, "train/global_step": 40, "train/loss": 7})", "loss"},
    {"csv", "step\ttrain_loss\n10\t9.5\n", "20\t@", "loss"}};

TEST_CASE("a number with something glued to it is a fault, and no part of it passes for the value") {
  std::vector<Sample> samples = kSamples;
  samples.insert(samples.end(), kFurther.begin(), kFurther.end());
  for (const Sample& sample : samples) {
    if (sample.line.find('@') == std::string_view::npos) continue;
    const bool whole_words = sample.dialect == "zs" || sample.dialect == "launch" || sample.dialect == "wandb";
    for (const char* const value :
         {"3,25", "3,254", "1,234.5", "3.25.1", "3.25_7", "3e", "3;25", "3'25", "3.25x", "0x1p3", "3,", "1 234,5"}) {
      const std::string_view text(value);
      if (sample.dialect == "json" && text == "3,") continue;  // 3 and a comma too many: told as such
      const bool thousands = sample.line.find("CrossEntropyLoss=") != std::string_view::npos;  // OLMo writes commas
      if (thousands && (text == "3,254" || text == "1,234.5")) continue;
      const bool comma = text == "3,", blank = text.find(' ') != std::string_view::npos;
      CAPTURE(sample.line);
      CAPTURE(value);
      const auto [out, stats] = outcome_of(std::string(sample.before) + filled(sample.line, value) + "\nother text\n");
      const auto found = out.values.find(std::string(sample.becomes));
      const std::set<std::string> got = found == out.values.end() ? std::set<std::string>() : found->second;
      if (whole_words && !got.empty()) {
        CHECK((blank || *got.begin() == text));  // as it stands, or up to the blank
        continue;
      }
      if (comma && stats.faulty == 0) {  // what follows decides: "Loss: 3, sync" is a 3
        CHECK(got.size() <= 1);
        continue;
      }
      CHECK((stats.faulty > 0 || stats.records == 0));  // "no metric line" is a fault of the log
      for (const char* const part :
           {"3", "1", "0", "3.25", "1234.5", "325", "3254", "0.003", "0.001", "0.00325", "3221225472"})
        CHECK(got.count(part) == 0);
    }
  }
}

TEST_CASE("commas between thousands are read where torchtitan writes them, in groups of three") {
  const auto tps = [](const std::string& value) {
    return outcome_of("step: 10  loss:  4.5  memory:  1.03GiB(1.09%)  tps: " + value +
                      "  tflops: 1,234.56  mfu: 3.95%\n");
  };
  CHECK(outcome_of("step: 10  loss:  4.5  tps: 3\n[titan] 2025-06-01 12:00:00,1 - root - INFO - Training completed\n")
            .out.values.at("exit_state=")
            .count("finished") == 1);
  CHECK(tps("12,345").out.values.at("tokens_per_second_per_rank").count("12345") == 1);
  CHECK(tps("1,012,345").out.values.at("tokens_per_second_per_rank").count("1012345") == 1);
  CHECK(tps("345").out.values.at("tflops").count("1234.56") == 1);
  for (const char* const wrong : {"12,34", "1234,567", "12,3456", "1,234.5,678"}) CHECK(tps(wrong).stats.faulty == 1);
}

TEST_CASE("torchtitan: the time between the last step and a restart is that of no step") {
  const auto line = [](const std::string& time, const std::string& step) {
    return "[titan] 2025-06-01 " + time + ",000 - root - INFO - step: " + step + "  loss:  4.5  tps: 3\n";
  };
  const Outcome out = outcome_of(line("12:00:01", "1") + line("12:00:03", "2") +
                                 "[titan] 2025-06-01 13:00:00,000 - root - INFO - Training starts at step 3\n" +
                                 line("13:00:02", "3") + line("13:00:04", "4"));
  CHECK(times(out) == std::set<std::string>{"2.00000"});
}

TEST_CASE("paragraph: batches of an epoch are counted across epochs, and say no number of steps") {
  const auto block = [](const std::string& head) { return head + ":\n\t Train loss/train/total: 2.5\n"; };
  const Outcome epochs = outcome_of(block("[epoch=1][batch=5/10]") + block("[epoch=1][batch=10/10]") +
                                    block("[epoch=2][batch=5/10]") + block("[epoch=3][batch=10/10]"));
  CHECK(epochs.out.values.at("step") == std::set<std::string>{"5", "10", "15", "30"});
  CHECK(epochs.out.values.at("epoch") == std::set<std::string>{"1", "2", "3"});
  CHECK(epochs.out.values.count("expected_steps=") == 0);
  const Outcome unknown = outcome_of(block("[epoch=2][batch=5]"));
  CHECK(unknown.stats.records == 1);
  CHECK(unknown.out.values.count("step") == 0);
  const Outcome whole = outcome_of(block("[batch=5/10]") + "\n" + block("[step=6/10,epoch=2]"));
  CHECK(whole.out.values.at("step") == std::set<std::string>{"5", "6"});
  CHECK(whole.out.values.at("expected_steps=") == std::set<std::string>{"10"});
}

TEST_CASE("llm.c: a line whose keys have a mark, or that counts epochs, is another program's") {
  for (const char* const line :
       {"step 1/20 | loss: 2.5 | lr: 0.1 | dt: 130ms\n", "step 1/20 | loss=2.5 | lr=0.1 | dt=130ms\n",
        "step 1/20 | loss 2.5 | lr: 0.1 | dt: 130ms\n", "iter 1: loss: 2.5, lr: 0.1, time: 130ms\n",
        "Epoch 1/3 | step 1/10 | loss 2.5 | lr 0.1 | 130 ms\n"}) {
    CAPTURE(line);
    const Outcome out = outcome_of(line);
    CHECK(out.stats.matched.count("general") == 1);
    CHECK(out.stats.faulty == 0);
    for (const char* const column : {"loss", "learning_rate", "iteration_time"})
      CHECK(out.out.values.count(column) == 1);
  }
  const std::string own = "step 1/20 | loss 2.5 (+nanz)| norm 4.5 (+nanz)| lr 0.1 | 130 ms\n";
  const Outcome torn = outcome_of(own + "step 2/20 | loss: 2.5 (+nanz)| norm 4.5 (+nanz)| lr 0.1 | 130 ms\n");
  CHECK(torn.stats.faulty == 1);
  CHECK(torn.out.values.count("loss:") == 0);
}

TEST_CASE("general: a loss whose line says that it is of an evaluation is none of the training") {
  for (const char* const line : {"[eval] step: 5 loss: 3.75 acc: 0.5\n", "Validation: step 5 loss 3.75\n",
                                 "[valid] step 5 loss 3.75\n", "Val Epoch: 1 Loss: 3.75\n"}) {
    CAPTURE(line);
    const Outcome out = outcome_of(std::string("[train] step: 5 loss: 2.5 lr: 0.1\n") + line);
    CHECK(out.out.values.at("loss") == std::set<std::string>{"2.5"});
    CHECK(out.out.values.at("valid_loss") == std::set<std::string>{"3.75"});
  }
  const Outcome test = outcome_of("train epoch 1 iter 10 loss 2.5\ntest epoch 1 iter 10 loss 3.75\n");
  CHECK(test.out.values.at("loss") == std::set<std::string>{"2.5"});
  CHECK(test.out.values.at("test_loss") == std::set<std::string>{"3.75"});
}

TEST_CASE("general: a line with two steps is torn") {
  CHECK(outcome_of("step 1 loss 4.0 lr 0.1\nstep 3 step 2 loss 3.85 lr 0.1\n").stats.faulty == 1);
  CHECK(outcome_of("step 1 loss 4.0 lr 0.1\nstep 2 step 2 loss 3.85 lr 0.1\n").stats.faulty == 0);
}

TEST_CASE("a byte order mark and CRLF hide nothing") {
  const std::string mark = "\xEF\xBB\xBF";
  CHECK(outcome_of(mark + "run: seed=7\nEpoch 1, Step 1, Loss: 2.5\n").out.values.at("seed=").count("7") == 1);
  const Outcome table = outcome_of(mark + "step,train_loss\r\n10,2.5\r\n20,2.25\r\n");
  CHECK(table.out.values.at("loss").size() == 2);
  CHECK(table.stats.faulty == 0);
}

TEST_CASE("a step is a whole number, or a fault") {
  for (const std::string_view line :
       {"Epoch 1, Step @, Loss: 2.5", "iter @: loss 2.5, time 5ms, mfu 7%", "step @: train loss 2.5, val loss 2.5",
        "step @/32 | loss 10.5 (+nanz)| norm 4 (+nanz)| lr 1.71e-06 | 2747.19 ms | 4% bf16 MFU | 38 tok/s",
        "step @/32 loss 4.5 lr 0.5", "step: @  loss:  4.5  memory:  1.03GiB(1.09%)  tps: 12,345",
        R"({"step": @, "loss": 2.5})", "[Rank 0] step=@, skipped=17, lr=[0.5], mom=[(0.9, 0.999)]",
        "[timer.py:260:stop] epoch=0/micro_step=4/global_step=@, RunningAvgSamplesPerSec=74.6, "
        "CurrSamplesPerSec=7.5"}) {
    for (const auto& [value, means] :
         {std::pair("1.", "1"), {"1.0", "1"}, {"2.5", ""}, {"2e3", "2000"}, {"-7", "-7"}}) {
      CAPTURE(line);
      CAPTURE(value);
      const auto [out, stats] = outcome_of(filled(line, value) + "\n");
      const auto found = out.values.find("step");
      if (found == out.values.end() || found->second.empty()) continue;
      CHECK(found->second == std::set<std::string>{means});
      CHECK((stats.faulty > 0) == (*means == '\0'));
    }
  }
}

TEST_CASE("JSON is read as JSON is") {
  for (const char* const wrong :
       {R"({"step": 1, "loss": 0123})", R"({"step": 1, "loss": +3})", R"({"step": 1, "loss": .5})",
        R"({"step": 1, "loss": 5.})", R"({"step": 1, "loss": 3, "loss": 4})"}) {
    CAPTURE(wrong);
    const Outcome outcome = outcome_of(std::string(wrong) + "\n");
    CHECK(outcome.stats.faulty == 1);
    CHECK(outcome.out.values.count("loss") == 0);
  }
}

TEST_CASE("of a log that ends within a line, no part of a value passes for the whole") {
  for (const Sample& sample : kSamples) {
    const std::string line = filled(sample.line, "12.345678");
    const Outcome whole = outcome_of(std::string(sample.before) + line + "\n");
    for (std::size_t size = 1; size < line.size(); ++size) {
      const std::string cut = line.substr(0, size);
      CAPTURE(cut);
      const Outcome outcome = outcome_of(std::string(sample.before) + cut);
      for (const auto& column : outcome.out.values) {
        const std::string& key = column.first;
        const auto known = whole.out.values.find(key);
        CAPTURE(key);
        for (const std::string& value : column.second) {
          CAPTURE(value);
          CHECK(known != whole.out.values.end());
          CHECK((known == whole.out.values.end() || known->second.count(value) == 1));
        }
      }
    }
  }
}

TEST_CASE("a line among those of other ranks, glued to their text or torn by it, is read or accounted for") {
  for (const Sample& sample : kSamples) {
    const std::string line = filled(sample.line, "12.345678"), before(sample.before);
    CAPTURE(line);
    const Outcome among = outcome_of("[rank1]: other text\n[rank2]: step up\n" + before + line + "\n[rank3]: 7\n");
    CHECK(among.stats.matched.count(std::string(sample.dialect)) == 1);
    for (std::size_t at = 0; at <= line.size(); ++at) {
      for (const char* other : {"[rank1]: other text", "other text\n", "\r", "\x1b[32m", "1"}) {
        const std::string torn = line.substr(0, at) + other + line.substr(at);
        outcome_of(before + torn + "\n" + line + "\n");  // checks the counts
      }
    }
  }
}

}  // namespace
}  // namespace zs::parse
