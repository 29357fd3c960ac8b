// SPDX-License-Identifier: Apache-2.0
#include "metric/guard.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <new>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/process.hpp"

// The shadows of the sanitizers fill the address space; g++ and clang++ say it in two ways.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ZS_SHADOWED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ZS_SHADOWED
#endif
#endif

namespace zs::metric {
namespace {

constexpr std::array<std::string_view, 4> kUnchecked = {"TREE", "SNOD", "HEAP", "GCOL"};  // signatures in the format
constexpr std::size_t kVersionAt = 8;
constexpr int kFirstChecked = 2;  // version of the superblock

/// In the copy: writes 'd' and the result, or 'e' and the message.
void work_within_limits(const std::function<std::string()>& work, int file, rlim_t seconds) {
  const rlimit processor{seconds, seconds}, core{0, 0};
  ::setrlimit(RLIMIT_CPU, &processor);
  ::setrlimit(RLIMIT_CORE, &core);
#if !defined(ZS_SHADOWED)
  rlimit memory{};
  ::getrlimit(RLIMIT_AS, &memory);
  memory.rlim_cur = std::min<rlim_t>(memory.rlim_cur, most_in_memory() * 2);  // RLIM_INFINITY is the largest
  ::setrlimit(RLIMIT_AS, &memory);
#endif
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGXCPU}) std::signal(signal, SIG_DFL);
  std::string answer;
  try {
    answer = "d" + work();
  } catch (const std::bad_alloc&) {
    answer = "eout of memory: its columns are too long";
  } catch (const std::exception& error) {
    answer = std::string("e") + error.what();
  }
  write_all(file, answer, "the answer");
}

}  // namespace

bool needs_guard(std::string_view image) {
  return image.size() <= kVersionAt || image[kVersionAt] < kFirstChecked ||
         std::any_of(kUnchecked.begin(), kUnchecked.end(),
                     [&](std::string_view signature) { return image.find(signature) != std::string_view::npos; });
}

std::string guarded(const std::function<std::string()>& work, unsigned seconds) {
  Ended ended = run_copy([&](int file) { work_within_limits(work, file, seconds); });
  std::string& answer = ended.output;
  if (const int signal = ended.status - 128; signal > 0) {
    throw Error(std::string("corrupt HDF5 data: the HDF5 library ") +
                (signal == SIGXCPU || signal == SIGKILL ? "does not come to an end" : "crashes") + " on it (signal " +
                std::to_string(signal) + ")");
  }
  if (answer.empty() || ended.status != 0) throw Error("cannot read the HDF5 data: its reader ended early");
  const bool failed = answer.front() == 'e';
  answer.erase(0, 1);
  if (failed) throw Error(answer);
  return std::move(answer);
}

}  // namespace zs::metric
