// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.hpp"
#include "base/name.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {

const std::vector<Entry>& dialects() {
  static const std::vector<Entry> kDialects = {
      {"reference",
       "ds_verify_loss and zs-train: metric line, closing line",
       "Epoch 1, Step 40, Loss: 10.555366 sync: True time: 0.4812662601470947 alloc_mem: 28307113472 peak_mem: "
       "50064946688",
       {"Epoch ", "Loss: ", "sync: ", "peak_mem: ", " iteration time: "},
       make_reference},
      {"deepspeed",
       "the DeepSpeed engine: step, throughput, time and memory lines",
       "[2023-12-29 13:02:49,647] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, "
       "lr=[0.0003333333333333334], mom=[(0.9, 0.999)]",
       {" step=", "SamplesPerSec=", "time (ms) | ", "Max_MA ", "***** Evaluating ", " exits successfully."},
       make_deepspeed},
      {"huggingface",
       "the Trainer of Hugging Face transformers",
       "{'loss': 2.075, 'learning_rate': 0.0002329900014453396, 'epoch': 0.04}",
       {"loss': ", "'epoch': ", "it/s]", "s/it]", "                    "},
       make_huggingface},
      {"torchtitan",
       "torchtitan",
       "[titan] 2025-06-01 12:00:00,123 - root - INFO - step: 10  loss:  4.2691  grad_norm:  1.0613  memory:  "
       "1.03GiB(1.09%)  tps: 12,345  tflops: 12.34  mfu: 3.95%",
       {"step: ", "Training starts at step"},
       [] { return make_forms("torchtitan"); }},
      {"nanogpt",
       "nanoGPT",
       "iter 100: loss 2.1234, time 135.12ms, mfu 12.34%",
       {": loss ", "train loss "},
       [] { return make_forms("nanogpt"); }},
      {"llm.c",
       "llm.c",
       "step    2/32000 | loss 10.539388 (+nanz)| norm 43.5996 (+nanz)| lr 1.71e-06 | 2747.19 ms | 47.4% bf16 MFU | "
       "381690 tok/s",
       {"| loss ", "train loss ", "val loss ", "total average iteration time: ", " trl:", " tel:", " eval:"},
       [] { return make_forms("llm.c"); }},
      {"megatron",
       "Megatron-LM, GPT-NeoX, Megatron-DeepSpeed",
       " iteration        5/     100 | consumed samples:           40 | elapsed time per iteration (ms): 1234.5 | "
       "learning rate: 1.500000E-04 | global batch size:     8 | lm loss: 1.083124E+01 | loss scale: 1.0 | grad norm: "
       "2.345 |",
       {" elapsed time per iteration", "validation loss at ", " memory (MB) | "},
       [] { return make_forms("megatron"); }},
      {"lightning",
       "progress bars with metrics: PyTorch Lightning, tqdm, Keras",
       "Epoch 0:  22%|██▏       | 4/18 [00:17<01:02,  4.47s/it, loss=9.947, v_num=193315]",
       {"it/s, ", "s/it, ", "it/s]", "s/it]", "`Trainer.fit` stopped", "/step - ", "/epoch - ", "Epoch "},
       make_lightning},
      {"verl",
       "verl, on its console",
       "step:10 - train/loss:1.234 - train/lr(1e-3):0.001",
       {"step:"},
       [] { return make_forms("verl"); }},
      {"json",
       "JSON lines with a step or a loss, such as wandb-history.jsonl, and JSON documents such as trainer_state.json",
       R"({"train/loss": 2.0751, "train/global_step": 40, "_step": 3, "_runtime": 61.4})",
       {"tep\"", "iter\"", "iteration\"", "steps\"", "updates\"", "loss\""},
       make_json},
      {"mllog",
       "MLPerf's logging",
       R"(:::MLLOG {"key": "eval_accuracy", "value": 5.26, "metadata": {"samples_count": 12288}})",
       {":::MLLOG "},
       make_mllog},
      {"paragraph",
       "Composer, OLMo, Stable-Baselines: a step, and each value in a line of its own",
       "[batch=20/100]:",
       {"[batch=", "[step=", "[epoch=", "----------"},
       make_paragraph},
      {"csv",
       "tables with a header, separated by commas, semicolons or tabs",
       "step,train_loss,learning_rate",
       {"step,", ",step", "step\t", "\tstep", "step;", "epoch,", ",epoch"},
       make_csv},
      {"zs",
       "zs-train: facts about the run",
       "run: model.name=gpt2",
       {"run: ", "Summary: ", "state_digest: "},
       make_zs},
      {"launch",
       "launch scripts and argparse: facts about the run",
       "ZERO_STAGE: 3",
       {"Namespace(", "BACKEND: ", "ZERO_STAGE: ", "NUM_PROCESSES: ", "EXTRA_OPTS: "},
       make_launch},
      {"wandb",
       "the console output of the W&B client: facts about the run",
       "wandb: Run data is saved locally in /home/me/wandb/run-20250617_042737-rbjz5u9t",
       {"wandb: "},
       make_wandb},
      {"failure",
       "tracebacks, launchers and Slurm: how a run failed",
       "srun: error: node07: task 3: Exited with exit code 1",
       {"Traceback (", "During handling of ", "The above exception was ", "xited with exit code ", "exitcode",
        "rank      : ", "Exit code: ", "srun: error: ", "Root Cause (", "exits with return code = ",
        " exited on signal ", "slurmstepd: error: ", "usage: ", "Usage: ", ": error: ", "Error: "},
       make_failure},
      {"general",
       "anyone: a step, its loss and other pairs of a key and a number",
       "step 5/12 loss 6.26 lr 0.001 time 0.130s",
       {"loss", "Loss", "LOSS"},
       make_general},
  };
  return kDialects;
}

std::vector<std::string> dialect_names() {
  std::vector<std::string> names;
  for (const Entry& entry : dialects()) names.emplace_back(entry.name);
  return names;
}

const Entry& dialect_named(std::string_view name) {
  const auto& entries = dialects();
  const auto found = std::ranges::find(entries, name, &Entry::name);
  if (found == entries.end())
    throw UsageError("there is no dialect '" + std::string(name) + "'" + did_you_mean(name, dialect_names()));
  return *found;
}

}  // namespace zs::parse
