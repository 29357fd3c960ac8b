// SPDX-License-Identifier: Apache-2.0
#include "setup/agreement.hpp"

#include <dlfcn.h>
#include <torch/version.h>

#include <algorithm>
#include <optional>

#include "attribute/table.hpp"
#include "base/number.hpp"
#include "cli/run.hpp"
#include "device/memory.hpp"
#include "kernel/calibration.hpp"
#include "kernel/kernels.hpp"
#include "setup/describe.hpp"
#include "tensorfile/storage.hpp"
#include "unit/arithmetic.hpp"

namespace zs::setup {
namespace {

/// The version; if it names any number of builds, with a hash of the program.
std::string binary() {
  std::string text = cli::version();
  if (text.ends_with("-dirty") || text == "unknown") {
    const auto program = Mapping::open("/proc/self/exe");
    text += " " + to_text(std::int64_t{tensorfile::crc32_of(program->bytes())});
  }
  return text;
}

/// The number of threads of OpenBLAS, which has a separate setting for it; "" if it is not loaded.
std::string openblas_threads() {
  const auto ask = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  return ask ? to_text(std::int64_t{ask()}) : "";
}

/// The facts that this process's bits depend on: two processes with equal facts and equal input have equal bits.
comm::Facts process_facts() {
  const unit::Arithmetic arithmetic = unit::arithmetic();
  return {{"the version of zs", binary()},
          {"LibTorch's version", arithmetic.torch},
          {"the library of matrix products", arithmetic.blas},
          {"the instruction set", arithmetic.instruction_set},
          {"the number of threads (OMP_NUM_THREADS)", to_text(std::int64_t{arithmetic.threads})},
          {"the number of OpenBLAS's threads", openblas_threads()}};
}

}  // namespace

void require_same_start(comm::Group& group, const config::Config& config, const comm::Facts& more) {
  if (group.size() == 1) return;
  comm::Facts facts;
  for (const config::Entry& entry : config.entries()) {
    const attribute::Attribute* const row = attribute::find(entry.key);  // of a path the content is compared
    if (!(row && row->place) && entry.kind != config::Kind::null) facts.emplace_back(entry.key, entry.value);
  }
  // The order of keys does not matter.
  std::sort(facts.begin(), facts.end());
  for (const auto& fact : process_facts()) facts.push_back(fact);
  facts.insert(facts.end(), more.begin(), more.end());
  comm::require_same(group, facts, "start of the training");
}

void set_arithmetic(comm::Group& group, const Settings& settings) {
  if (settings.deterministic) {  // LibTorch refuses operations that do not repeat their bits
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
#if TORCH_VERSION_MAJOR >= 2
    at::globalContext().setDeterministicFillUninitializedMemory(false);  // it costs time, and no bit depends on it
#endif
  }
  kernel::allow_tf32(settings.tf32);
  kernel::use_float8(settings.float8);
  kernel::repeat_bits(settings.deterministic);
  comm::together(group, "reading of the table of matrix products",
                 [&] { kernel::use_products(group.device(), settings.calibrated); });
  auto facts = device::arithmetic(group.device());
  facts["products"] = products(group.device(), settings);
  comm::require_same(group, {facts.begin(), facts.end()}, "start of the training");
}

Batches read_batches(comm::Group& group, const Settings& settings, const model::Model& model) {
  std::optional<Batches> batches;
  comm::together(group, "reading of the data set", [&] {
    batches.emplace(settings, model, settings.micro_batches());
    batches->steps();  // throws where they do not fill one step
  });
  comm::require_same(group,
                     {{"the tokens of the data set", to_text(batches->data().tokens)},
                      {"the checksum of the data set", batches->data().sha256}},
                     settings.dataset);
  return *std::move(batches);
}

}  // namespace zs::setup
