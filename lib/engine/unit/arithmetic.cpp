// SPDX-License-Identifier: Apache-2.0
#include "unit/arithmetic.hpp"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace zs::unit {
namespace {

constexpr const char* kCoreType = "OPENBLAS_CORETYPE";
/// Settings that choose other kernels, so other bits.
constexpr std::array kSettings = {"MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA",
                                  "ONEDNN_DEFAULT_FPMATH_MODE"};
/// Instruction sets by which oneDNN has no products of 16 bits that are faster than float32's, as its setting names
/// them.
constexpr std::array<std::string_view, 7> kWithoutBfloat16 = {
    "SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI"};
/// Flags of processors that BLAS libraries choose kernels by, in the order of their age.
constexpr std::array kFlags = {"sse3",        "avx",         "fma",      "avx2",    "avx512f", "avx512_vnni",
                               "avx512_bf16", "avx512_fp16", "amx_bf16", "asimdhp", "bf16",    "sve"};
/// OpenBLAS's core types that use neither AVX2 nor FMA.
constexpr std::array kOldCores = {"Prescott",  "Core2",     "Penryn",       "Dunnington",  "Nehalem",
                                  "Atom",      "Nano",      "Katmai",       "Coppermine",  "Banias",
                                  "Northwood", "Opteron",   "Opteron_SSE3", "Athlon",      "Barcelona",
                                  "Bobcat",    "Bulldozer", "Piledriver",   "Steamroller", "Sandybridge"};

/// The version text of a loaded library; "" if it is not loaded.
std::string said_by(const char* function) {
  const auto ask = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, function));
  return ask ? ask() : "";
}

std::string openblas_core() { return said_by("openblas_get_corename"); }

bool has(std::string_view words, std::string_view word) {
  return (" " + std::string(words) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

/// The part of `text` after `words`, up to the first of `ends`.
std::string after(const std::string& text, std::string_view words, const char* ends) {
  const std::size_t at = text.find(words);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + words.size();
  return text.substr(begin, text.find_first_of(ends, begin) - begin);
}

/// The library that the BLAS symbol comes from, if the library does not report its name.
std::string blas_file() {
  Dl_info info = {};
  void* const product = dlsym(RTLD_DEFAULT, "sgemm_");
  return product && dladdr(product, &info) != 0 && info.dli_fname ? info.dli_fname : "";
}

bool reference_blas() { return openblas_core().empty() && blas_file().find("/blas/libblas.so") != std::string::npos; }

std::string blas_name() {
  const std::string mkl = after(at::get_mkl_version(), "Library Version ", "-");
  const std::string onednn = after(at::get_mkldnn_version(), "DNN v", " (");
  std::string name;
  if (!mkl.empty()) {
    name = "MKL " + mkl;
  } else if (const std::string core = openblas_core(); !core.empty()) {
    name = "OpenBLAS " + after(said_by("openblas_get_config"), "OpenBLAS ", " ") + " " +
           core;  // OPENBLAS_CORETYPE shows in it
  } else {
    name = reference_blas() ? "reference BLAS" : blas_file();
  }
  if (!onednn.empty()) name += (name.empty() ? "oneDNN " : ", oneDNN ") + onednn;
  for (const char* const setting : kSettings) {
    if (const char* const value = std::getenv(setting); value && *value)
      name += std::string(", ") + setting + "=" + value;
  }
  return name;
}

}  // namespace

std::string processor(std::string_view key) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with(key) && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  }
  return "";
}

std::string better_core(std::string_view core, std::string_view flags) {
  if (std::find(kOldCores.begin(), kOldCores.end(), core) == kOldCores.end()) return "";
  const auto supports = [&](std::initializer_list<std::string_view> needed) {
    return std::all_of(needed.begin(), needed.end(), [&](std::string_view flag) { return has(flags, flag); });
  };
  if (!supports({"avx2", "fma"})) return "";
  if (!supports({"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"})) return "Haswell";
  return supports({"amx_bf16", "avx512_bf16"}) ? "SapphireRapids" : "SkylakeX";
}

Arithmetic arithmetic() {
  const std::string flags = processor("flags") + processor("Features");
  std::string choice = processor("vendor_id");
  for (const char* const flag : kFlags) {
    if (has(flags, flag)) choice += (choice.empty() ? "" : " ") + std::string(flag);
  }
  return {.torch = TORCH_VERSION,
          .blas = blas_name(),
          .instruction_set = after(at::show_config(), "CPU capability usage: ", "\n") + " (" + choice + ")",
          .threads = at::get_num_threads()};
}

std::string bfloat16_products(std::string_view flags, std::string_view most) {
  std::string limit(most);
  std::transform(limit.begin(), limit.end(), limit.begin(), [](unsigned char c) { return std::toupper(c); });
  const bool limited = !limit.empty() && limit != "ALL" && limit != "DEFAULT";
  if (std::find(kWithoutBfloat16.begin(), kWithoutBfloat16.end(), limit) != kWithoutBfloat16.end()) return "";
  if (has(flags, "amx_bf16") && (!limited || limit.find("AMX") != std::string::npos)) return "amx_bf16";
  return has(flags, "avx512_bf16") ? "avx512_bf16" : "";
}

const std::string& bfloat16_products() {
  static const std::string answer = [] {
    if (!at::hasMKLDNN()) return std::string();
    const char* most = std::getenv("ONEDNN_MAX_CPU_ISA");
    if (!most) most = std::getenv("DNNL_MAX_CPU_ISA");  // its old name
    return bfloat16_products(processor("flags"), most ? most : "");
  }();
  return answer;
}

at::ScalarType computed_in(at::ScalarType type, at::DeviceType device) {
  return device == at::kCPU && type == at::kHalf ? at::kFloat : type;
}

std::string slow_products() {
  if (reference_blas()) {
    return "LibTorch multiplies matrices with the reference BLAS (" + blas_file() +
           "), tens of times slower than OpenBLAS: share/blas says how to mend it";
  }
  const std::string better = better_core(openblas_core(), processor("flags"));
  if (better.empty()) return "";
  const std::string setting(kCoreType);
  const std::string remedy = std::getenv(kCoreType) ? "leave out " + setting : "set " + setting + "=" + better;
  return "OpenBLAS uses its kernels for " + openblas_core() +
         ", several times slower than this processor can: " + remedy;
}

void choose_products(char** argv) {
  const std::string better = better_core(openblas_core(), processor("flags"));
  if (better.empty() || std::getenv(kCoreType)) return;
  setenv(kCoreType, better.c_str(), 1);
  execv("/proc/self/exe", argv);
  unsetenv(kCoreType);  // it cannot be set: slow_products() reports it
}

}  // namespace zs::unit
