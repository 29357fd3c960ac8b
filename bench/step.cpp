// SPDX-License-Identifier: Apache-2.0
// Where the time of a training step of GPT-2 124M goes on this processor, by kind: started by bench/step as
// step BATCH LENGTH STEPS plain|--compile float32|bfloat16. LibTorch tells when an operation begins and ends
// (RecordFunction); what it took less what it called belongs to its kind, or to its caller's where it has none. Times
// are the first thread's on the processor, which does its share of all: what else runs on the machine does not count.
// "all" are steps without that observation.
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "comm/group.hpp"
#include "device/memory.hpp"
#include "kernel/kernels.hpp"
#include "model/model.hpp"
#include "zero/engine.hpp"

namespace {

enum Kind { kProducts, kAttention, kNorms, kLoss, kOptimizer, kCommunication, kOther, kKinds };
constexpr std::array<const char*, kKinds> kNames = {"matrix products", "attention",     "norms", "loss",
                                                    "optimizer",       "communication", "other"};

/// The kind of an operation by its name, kKinds where that is its caller's.
Kind kind_of(std::string_view name) {
  struct Word {
    std::string_view part;
    Kind kind;
  };
  static constexpr std::array kWords = {
      Word{"zs::attention", kAttention},
      Word{"::Attention", kAttention},
      Word{"bmm", kAttention},
      Word{"Bmm", kAttention},
      Word{"scaled_dot", kAttention},
      Word{"ScaledDot", kAttention},
      Word{"log_softmax", kLoss},
      Word{"LogSoftmax", kLoss},
      Word{"softmax", kAttention},
      Word{"Softmax", kAttention},
      Word{"zs::loss", kLoss},
      Word{"::Loss", kLoss},
      Word{"cross_entropy", kLoss},
      Word{"nll_loss", kLoss},
      Word{"NllLoss", kLoss},
      Word{"zs::product", kProducts},
      Word{"aten::mm", kProducts},
      Word{"aten::addmm", kProducts},
      Word{"layer_norm", kNorms},
      Word{"LayerNorm", kNorms},
      Word{"zs::optimizer", kOptimizer},
      Word{"zs::communication", kCommunication},
      Word{"zs::gelu", kOther},
      Word{"elu", kOther},
  };
  for (const Word& word : kWords) {
    if (name.find(word.part) != std::string_view::npos) return word.kind;
  }
  return kKinds;
}

double seconds_of(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
double now() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
double seconds_of_all() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

struct Operation {
  Kind kind;
  double begin;
  double called = 0;  // seconds in what it called
};
std::vector<Operation> under_way;
std::array<double, kKinds> took{};

std::unique_ptr<at::ObserverContext> begins(const at::RecordFunction& function) {
  const Kind found = kind_of(function.name()), caller = under_way.empty() ? kOther : under_way.back().kind;
  // What attention multiplies is attention's; the head's products are products, in the loss too.
  const bool inherits = found == kKinds || (caller == kAttention && found == kProducts);
  under_way.push_back({inherits ? caller : found, now()});
  return nullptr;
}
void ends(const at::RecordFunction&, at::ObserverContext*) {
  const Operation operation = under_way.back();
  under_way.pop_back();
  const double spent = now() - operation.begin;
  took[operation.kind] += spent - operation.called;
  if (!under_way.empty()) under_way.back().called += spent;
}

void measure(std::int64_t batch_size, std::int64_t length, int steps, const std::string& kernels,
             const std::string& dtype) {
  zs::device::count_tensors();
  zs::device::keep_freed_memory();
  zs::model::Settings settings;
  settings.name = "gpt2";
  settings.seq_length = length;
  settings.fused = kernels == "--compile";
  const zs::model::Model model = zs::model::make(settings);
  const auto group = zs::comm::single();
  zs::zero::Settings engine_settings;
  engine_settings.max_grad_norm = 1;
  if (dtype == "bfloat16") engine_settings.dtype = at::kBFloat16;
  zs::zero::Engine engine(*group, model.units, {}, engine_settings);
  const at::Tensor text = at::randint(0, 256, {batch_size, length + 1}, at::kLong);
  const zs::unit::Batch batch{text.narrow(1, 0, length).contiguous(), text.narrow(1, 1, length).contiguous()};
  const auto step = [&](int number) { engine.step(number, 1e-3, [&](std::int64_t) { return batch; }); };
  step(1);
  const double first = now(), first_of_all = seconds_of_all();
  for (int i = 0; i < steps; ++i) step(2 + i);
  const double unobserved = (now() - first) / steps, of_all = (seconds_of_all() - first_of_all) / steps;
  at::addThreadLocalCallback(
      at::RecordFunctionCallback(begins, ends)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
  const double begin = now();
  for (int i = 0; i < steps; ++i) step(2 + steps + i);
  const double whole = (now() - begin) / steps;
  at::clearCallbacks();
  double known = 0;
  for (int kind = 0; kind < kOther; ++kind) known += took[static_cast<std::size_t>(kind)] / steps;
  for (int kind = 0; kind < kKinds; ++kind) {
    const double time = kind == kOther ? whole - known : took[static_cast<std::size_t>(kind)] / steps;
    std::printf("%s\t%s\t%s\t%.3f\t%.1f %%\n", kernels.c_str(), dtype.c_str(), kNames[static_cast<std::size_t>(kind)],
                time, 100 * time / whole);
  }
  std::printf("%s\t%s\tall\t%.3f\n", kernels.c_str(), dtype.c_str(), unobserved);
  std::printf("%s\t%s\tall threads\t%.3f\n", kernels.c_str(), dtype.c_str(), of_all);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 6) throw zs::Error("step BATCH LENGTH STEPS plain|--compile float32|bfloat16");
    const char* const threads = std::getenv("OMP_NUM_THREADS");
    at::set_num_threads(threads ? std::atoi(threads) : 1);
    measure(std::atoll(argv[1]), std::atoll(argv[2]), std::atoi(argv[3]), argv[4], argv[5]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench/step: %s\n", error.what());
    return 2;
  }
  return 0;
}
