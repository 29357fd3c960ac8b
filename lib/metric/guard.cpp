// SPDX-License-Identifier: Apache-2.0
#include "metric/guard.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>

#include "base/error.hpp"
#include "base/file.hpp"

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

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::string read_all(int file) {
  std::string bytes;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// The child: writes 'd' and the result, or 'e' and the message, and ends without running anybody's exit handlers.
[[noreturn]] void work_and_end(const std::function<std::string()>& work, int file, rlim_t seconds) {
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
  bool written = false;
  try {
    written = write_all(file, "d" + work());
  } catch (const std::bad_alloc&) {
    written = write_all(file, "eout of memory: its columns are too long");
  } catch (const std::exception& error) {
    written = write_all(file, std::string("e") + error.what());
  }
  ::_exit(written ? 0 : 1);
}

}  // namespace

bool needs_guard(std::string_view image) {
  return image.size() <= kVersionAt || image[kVersionAt] < kFirstChecked ||
         std::any_of(kUnchecked.begin(), kUnchecked.end(),
                     [&](std::string_view signature) { return image.find(signature) != std::string_view::npos; });
}

std::string guarded(const std::function<std::string()>& work, unsigned seconds) {
  std::array<int, 2> ends;
  if (::pipe(ends.data()) != 0) throw Error("pipe: " + errno_text());
  const pid_t child = ::fork();
  if (child < 0) throw Error("fork: " + errno_text());
  if (child == 0) {
    ::close(ends[0]);
    work_and_end(work, ends[1], seconds);
  }
  ::close(ends[1]);
  std::string answer = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    throw Error(std::string("corrupt HDF5 data: the HDF5 library ") +
                (signal == SIGXCPU || signal == SIGKILL ? "does not come to an end" : "crashes") + " on it (signal " +
                std::to_string(signal) + ")");
  }
  if (answer.empty() || WEXITSTATUS(status) != 0) throw Error("cannot read the HDF5 data: its reader ended early");
  const bool failed = answer.front() == 'e';
  answer.erase(0, 1);
  if (failed) throw Error(answer);
  return answer;
}

}  // namespace zs::metric
