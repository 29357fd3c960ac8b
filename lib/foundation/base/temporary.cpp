// SPDX-License-Identifier: Apache-2.0
#include "base/temporary.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace zs {
namespace {

constexpr std::string_view kPrefix = ".zs-tmp-";
constexpr int kRandom = 12;  // 60 bits

// The handler's data: at fixed addresses, since it may not allocate.
struct Slot {
  std::atomic<pid_t> owner{0};  // 0: free
  std::array<char, 4096> path{};
};
std::array<Slot, 32> slots;
std::mutex slots_in_use;

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

/// Only calls that a signal handler may make.
extern "C" void remove_and_end(int signal) {
  const pid_t self = ::getpid();
  for (Slot& slot : slots) {
    if (slot.owner.load() != self || ::unlink(slot.path.data()) == 0 || errno != EISDIR) continue;
    const pid_t child = ::_Fork();
    if (child == 0) {
      ::execl("/bin/rm", "rm", "-rf", "--", slot.path.data(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    if (child > 0) ::waitpid(child, nullptr, 0);
  }
  ::raise(signal);  // SA_RESETHAND: now it ends the process, and its parent sees the signal
}

void handle_signals() {
  for (const int signal : kSignals) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = remove_and_end;
    ours.sa_flags = SA_RESETHAND | SA_NODEFER;
    ::sigaction(signal, &ours, nullptr);
  }
}

}  // namespace

std::string random_letters(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    unsigned char byte = 0;
    if (::getrandom(&byte, 1, 0) != 1) throw Error("random numbers: " + errno_text());
    text += kClearLetters[byte % kClearLetters.size()];
  }
  return text;
}

bool names_temporary(const std::string& name) {
  return name.starts_with(kPrefix) && name.size() == kPrefix.size() + kRandom &&
         name.find_first_not_of(kClearLetters, kPrefix.size()) == std::string::npos;
}

Temporary::Temporary(const std::string& target, mode_t mode, const std::string& folder) : target_(target) {
  const std::filesystem::path place = folder.empty() ? std::filesystem::path(target).parent_path() : folder.c_str();
  do {
    path_ = (place / (std::string(kPrefix) + random_letters(kRandom))).string();
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  } while (file_ < 0 && errno == EEXIST);
  if (file_ < 0) {
    path_.clear();
    throw Error(target, 0, errno_text());
  }
  guard_.emplace(path_);
}

Temporary::~Temporary() {
  if (file_ >= 0) ::close(file_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

void Temporary::publish() {
  if (::fsync(file_) != 0) throw Error(target_, 0, "sync: " + errno_text());
  if (::close(std::exchange(file_, -1)) != 0) throw Error(target_, 0, "close: " + errno_text());
  if (::rename(path_.c_str(), target_.c_str()) != 0) throw Error(target_, 0, "rename: " + errno_text());
  guard_.reset();
  path_.clear();
}

RemovedBySignal::RemovedBySignal(const std::string& path) {
  if (path.size() >= slots[0].path.size()) return;
  const std::lock_guard lock(slots_in_use);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    // A forked process has copies of its parent's.
    if (slots[i].owner.load() == ::getpid()) continue;
    slots[i].owner = 0;
    std::memcpy(slots[i].path.data(), path.c_str(), path.size() + 1);
    slots[i].owner = ::getpid();
    slot_ = static_cast<int>(i);
    break;
  }
  handle_signals();
}

RemovedBySignal::~RemovedBySignal() {
  if (slot_ >= 0) slots[static_cast<std::size_t>(slot_)].owner = 0;
}

}  // namespace zs
