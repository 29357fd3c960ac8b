// SPDX-License-Identifier: Apache-2.0
#include "train/agreement.hpp"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/number.hpp"
#include "cli/run.hpp"
#include "tensorfile/storage.hpp"

namespace zs::train {
namespace {

/// Keys that name a thing or a place: rank 0's count, or what lies there is compared.
constexpr std::array<std::string_view, 5> kPlaces = {"run.name", "run.output_dir", "run.checkpoint",
                                                     "data.dataset_path", "sweep_name"};

/// Variables by which libraries choose other instructions or another precision.
constexpr std::array kSteering = {"MKL_CBWR",
                                  "MKL_ENABLE_INSTRUCTIONS",
                                  "ONEDNN_MAX_CPU_ISA",
                                  "DNNL_MAX_CPU_ISA",
                                  "ONEDNN_DEFAULT_FPMATH_MODE",
                                  "DNNL_DEFAULT_FPMATH_MODE",
                                  "ONEDNN_CPU_ISA_HINTS",
                                  "DNNL_CPU_ISA_HINTS"};

/// The version; of one that stands for any number of builds, with a hash of the program.
std::string binary() {
  std::string text = cli::version();
  if (text.ends_with("-dirty") || text == "unknown") {
    const auto program = tensorfile::Mapping::open("/proc/self/exe");
    text += " " + to_text(std::int64_t{tensorfile::crc32_of(program->bytes())});
  }
  return text;
}

template <typename Result>
std::string asked(const char* function) {
  void* const found = ::dlsym(RTLD_DEFAULT, function);
  if (!found) return "";
  const Result result = reinterpret_cast<Result (*)()>(found)();
  if constexpr (std::is_pointer_v<Result>)
    return result;
  else
    return to_text(std::int64_t{result});
}

/// What this process computes with: two processes that have the same of it, and the same input, have the same bits.
comm::Facts arithmetic() {
  comm::Facts facts = {{"the version of zs", binary()},
                       {"the number of threads (OMP_NUM_THREADS)", to_text(std::int64_t{at::get_num_threads()})}};
  // The versions of LibTorch's parts and the instruction set that it chose, a line each.
  std::istringstream lines(at::show_config());
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(" -"), colon = line.find(':');
    if (begin == std::string::npos) continue;
    // "CPU capability usage: AVX2", or words without a colon.
    const std::size_t middle = colon == std::string::npos ? begin : std::min(line.size(), colon + 2);
    facts.emplace_back("LibTorch: " + line.substr(begin, colon == std::string::npos ? colon : colon - begin),
                       line.substr(middle));
  }
  facts.emplace_back("OpenBLAS", asked<const char*>("openblas_get_config"));
  facts.emplace_back("OpenBLAS's threads", asked<int>("openblas_get_num_threads"));
  facts.emplace_back("MKL's instructions", asked<int>("mkl_cbwr_get_auto_branch"));
  for (const char* const name : kSteering) {
    const char* const value = std::getenv(name);
    facts.emplace_back(name, value ? value : "not set");
  }
  return facts;
}

}  // namespace

void require_same_start(comm::Group& group, const config::Config& config, const comm::Facts& more) {
  if (group.size() == 1) return;
  comm::Facts facts;
  for (const config::Entry& entry : config.entries()) {
    const bool place = std::find(kPlaces.begin(), kPlaces.end(), entry.key) != kPlaces.end();
    if (!place && entry.kind != config::Kind::null) facts.emplace_back(entry.key, entry.value);
  }
  // The order of keys is no matter.
  std::sort(facts.begin(), facts.end());
  for (const auto& fact : arithmetic()) facts.push_back(fact);
  facts.insert(facts.end(), more.begin(), more.end());
  comm::require_same(group, facts, "start of the training");
}

Batches read_batches(comm::Group& group, const Settings& settings, const model::Model& model) {
  std::optional<Batches> batches;
  comm::together(group, "reading of the data set", [&] {
    batches.emplace(settings, model, static_cast<std::int64_t>(group.size()) * settings.micro_steps);
    batches->steps();  // throws where they do not fill one step
  });
  comm::require_same(
      group,
      {{"the tokens of the data set", to_text(static_cast<std::int64_t>(batches->corpus().tokens.size()))},
       {"the SHA-256 of the data set's tokens", batches->corpus().sha256}},
      settings.dataset);
  return *std::move(batches);
}

}  // namespace zs::train
