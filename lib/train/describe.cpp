// SPDX-License-Identifier: Apache-2.0
#include "train/describe.hpp"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <filesystem>
#include <fstream>

#include "base/number.hpp"
#include "config/known.hpp"
#include "registry/run.hpp"

namespace zs::train {
namespace {

/// The instructions that LibTorch chose at its start: the processor's, or those of $ATEN_CPU_CAPABILITY.
std::string instruction_set() {
  constexpr std::string_view kBefore = "CPU capability usage: ";
  const std::string all = at::show_config();  // that line is in every version, a function for it is not
  const std::size_t at = all.find(kBefore);
  return at == std::string::npos ? "" : all.substr(at + kBefore.size(), all.find('\n', at) - at - kBefore.size());
}

/// What multiplies matrices. OpenBLAS names its version and the kernels it chose; of others the file says most.
std::string blas() {
  if (void* const config = ::dlsym(RTLD_DEFAULT, "openblas_get_config"))
    return reinterpret_cast<const char* (*)()>(config)();
  if (at::hasMKL()) return at::get_mkl_version();
  Dl_info info{};
  void* const product = ::dlsym(RTLD_DEFAULT, "sgemm_");
  if (!product || ::dladdr(product, &info) == 0) return "";
  std::error_code failure;
  const auto path = std::filesystem::canonical(info.dli_fname, failure);
  return failure ? info.dli_fname : path.string();
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "";
}

}  // namespace

attribute::Facts configured(const config::Config& config) {
  attribute::Facts facts;
  for (const auto& [key, value] : registry::settings(config)) {
    if (config::known(key) && !value.empty()) facts[std::string(attribute::primary(key))] = value;
  }
  return facts;
}

attribute::Facts arithmetic() {
  return {{"device", "cpu"},
          {"cpu", processor()},
          {"instruction_set", instruction_set()},
          {"torch", TORCH_VERSION},
          {"blas", blas()},
          {"threads", to_text(static_cast<std::int64_t>(at::get_num_threads()))}};
}

}  // namespace zs::train
