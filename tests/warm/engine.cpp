// SPDX-License-Identifier: Apache-2.0
// For tests: an engine that has loaded LibTorch, which takes 0.2 s of processor, and forks for each start.
//   warm.so   BUILD/engine with it in LD_PRELOAD serves at ZS_WARM_ENGINE/engine in place of main(), and runs main() in
//             each fork. It ends with its parent, and when that socket is gone or its file is no longer the engine.
//   engine    the client. In the folder BUILD-warm it stands beside zs-train and zs-verify, which start it in place of
//             BUILD/engine. It becomes that where nothing serves, where another file is served, and where a fork would
//             not be what a start is (`alike`). BUILD-warm/mpi/digests is one for BUILD/mpi/digests.
// The fork has the client's arguments, environment, folder, open files, mask, signals, priority and processors. Signals
// reach it from the client, it dies with the client, and the client ends as it does.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace {

constexpr const char* kFolder = "ZS_WARM_ENGINE";  // of the sockets
constexpr int kFiles = 200;                        // open files of a client at most, the folder too
constexpr int kHigh = 512;                         // files of the server are from here on, above those of clients
constexpr int kIdle = 3600;                        // s: a server that nobody needs for so long ends

/// What a client sends first, with its files; then `bytes` of text: arguments and environment, each with a zero.
struct Request {
  std::uint32_t bytes = 0, arguments = 0, files = 0;
  mode_t mask = 0;
  int priority = 0;
  cpu_set_t processors{};
  sigset_t blocked{};
  std::uint64_t ignored = 0;                   // signal n: bit n
  std::array<std::int32_t, kFiles> numbers{};  // of the files; the folder's is -1
};

sockaddr_un address(const char* path) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::strncpy(to.sun_path, path, sizeof to.sun_path - 1);
  return to;
}

std::string target(const char* link) {
  std::array<char, 4096> name{};
  return {name.data(), static_cast<std::size_t>(std::max<ssize_t>(::readlink(link, name.data(), name.size()), 0))};
}

/// The socket of a program; "" without a folder of them.
std::string socket_of(const std::string& program) {
  const char* const folder = std::getenv(kFolder);
  return folder && *folder ? folder + program.substr(program.rfind('/')) : "";
}

bool same_file(const char* one, const char* other) {
  struct stat a {
  }, b{};
  return ::stat(one, &a) == 0 && ::stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

#ifdef ZS_SERVER

namespace {

struct Child {
  int socket, process, pid;
};

/// The text that follows a request; empty if the client went away.
std::string text_of(int client, std::uint32_t bytes) {
  std::string text(bytes, '\0');
  return ::recv(client, text.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes) ? text : "";
}

/// Reads a request and its files; false if there is none.
bool received(int client, Request& request, std::vector<int>& files) {
  iovec part{&request, sizeof request};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFiles)> room{};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = room.data(), message.msg_controllen = room.size();
  const bool whole = ::recvmsg(client, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC) == sizeof request;
  if (const cmsghdr* const rights = CMSG_FIRSTHDR(&message)) {
    files.resize((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(files.data(), CMSG_DATA(rights), files.size() * sizeof(int));
  }
  return whole && files.size() == request.files;
}

/// Makes this fork what the client is; argv and the environment lie in `text`, which stays.
void become(const Request& request, const std::vector<int>& files, char* text, int& argc, char**& argv) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::vector<int> high;
  for (const int file : files) high.push_back(::fcntl(file, F_DUPFD_CLOEXEC, kHigh));
  for (int file = 0; file < kHigh; ++file) ::close(file);
  for (std::size_t i = 0; i < high.size(); ++i) {
    if (request.numbers[i] < 0)
      (void)!::fchdir(high[i]);
    else
      ::dup2(high[i], request.numbers[i]);
  }
  ::close_range(kHigh, ~0U, 0);
  ::umask(request.mask);
  ::setpriority(PRIO_PROCESS, 0, request.priority);
  ::sched_setaffinity(0, sizeof request.processors, &request.processors);
  for (int number = 1; number < SIGRTMIN; ++number)
    std::signal(number, request.ignored >> number & 1 ? SIG_IGN : SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &request.blocked, nullptr);
  static std::vector<char*> words;
  for (char* at = text; at < text + request.bytes; at += std::strlen(at) + 1) words.push_back(at);
  words.insert(words.begin() + request.arguments, nullptr);
  words.push_back(nullptr);
  argc = static_cast<int>(request.arguments), argv = words.data();
  environ = words.data() + request.arguments + 1;
}

/// Serves until nobody needs it. Returns in a fork, with a client's arguments.
void serve(int& argc, char**& argv) {
  const std::string engine = target("/proc/self/exe"), path = socket_of(engine);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::setsid();
  const int low = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int server = ::fcntl(low, F_DUPFD_CLOEXEC, kHigh);
  ::close(low);
  const std::string made = path + ".new";
  const sockaddr_un here = address(made.c_str());
  if (::bind(server, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 || ::listen(server, 128) != 0 ||
      std::rename(made.c_str(), path.c_str()) != 0)
    ::_exit(2);
  std::vector<Child> children;
  for (int idle = 0;; ++idle) {
    const bool open = idle < kIdle && ::access(path.c_str(), F_OK) == 0 && same_file("/proc/self/exe", engine.c_str());
    if (!open && children.empty()) ::_exit(0);
    std::vector<pollfd> events = {{open ? server : -1, POLLIN, 0}};
    for (const Child& child : children) {
      events.push_back({child.socket, POLLIN, 0});
      events.push_back({child.process, POLLIN, 0});
    }
    ::poll(events.data(), events.size(), 1000);
    for (std::size_t i = children.size(); i-- > 0;) {
      Child& child = children[i];
      if (events[2 + 2 * i].revents != 0) {
        std::int32_t status = 0;
        ::waitpid(child.pid, &status, 0);
        (void)!::send(child.socket, &status, sizeof status, MSG_NOSIGNAL);
        ::close(child.socket), ::close(child.process);
        children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
      } else if (events[1 + 2 * i].revents != 0) {
        std::uint8_t number = SIGKILL;
        const bool gone = ::recv(child.socket, &number, 1, 0) != 1;
        ::kill(child.pid, gone ? SIGKILL : number);
        if (gone) ::close(child.socket), child.socket = -1;
      }
    }
    if (events[0].revents == 0) continue;
    idle = 0;
    const int client = ::accept4(server, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    Request request;
    std::vector<int> files;
    std::string text;
    if (received(client, request, files)) text = text_of(client, request.bytes);
    const int pid = text.empty() ? -1 : ::fork();
    if (pid == 0) {
      become(request, files, (new std::string(std::move(text)))->data(), argc, argv);
      return;
    }
    for (const int file : files) ::close(file);
    const int kept = ::fcntl(client, F_DUPFD_CLOEXEC, kHigh);
    ::close(client);
    if (pid < 0) {
      ::close(kept);
      continue;
    }
    const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    children.push_back({kept, ::fcntl(process, F_DUPFD_CLOEXEC, kHigh), pid});
    ::close(process);
  }
}

int (*real_main)(int, char**, char**);

int served_main(int argc, char** argv, char**) {
  serve(argc, argv);
  return real_main(argc, argv, environ);
}

}  // namespace

// In front of glibc's: the libraries are loaded, and their tables filled, when this is called.
extern "C" int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(),
                                 void (*fini)(), void (*linker_fini)(), void* stack) {
  real_main = main;
  const auto start = reinterpret_cast<decltype(&__libc_start_main)>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(std::getenv(kFolder) ? served_main : main, argc, argv, init, fini, linker_fini, stack);
}

#else

namespace {

int server = -1;

void forward(int number) {
  const auto byte = static_cast<std::uint8_t>(number);
  (void)!::send(server, &byte, 1, MSG_NOSIGNAL);
}

std::string read_all(const std::string& path) {
  std::string text;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::array<char, 4096> part{};
  for (ssize_t n = 0; file >= 0 && (n = ::read(file, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  if (file >= 0) ::close(file);
  return text;
}

/// The lines of /proc/PID/status that say who a process is and what it may.
std::string rights(const std::string& process) {
  const std::string status = read_all(process + "/status");
  std::string lines;
  for (const char* const name : {"\nUid:", "\nGid:", "\nGroups:", "\nCapEff:", "\nNoNewPrivs:", "\nSeccomp:"}) {
    const std::size_t at = status.find(name);
    if (at != std::string::npos) lines += status.substr(at, status.find('\n', at + 1) - at);
  }
  return lines;
}

/// The variables of an environment (each with a zero) that libraries read when they are loaded, in order.
std::set<std::string> early(const std::string& environment) {
  std::set<std::string> found;
  for (std::size_t at = 0; at < environment.size(); at += std::strlen(environment.c_str() + at) + 1) {
    const std::string variable = environment.c_str() + at;
    for (const char* const begin : {"OMP_", "GOMP_", "KMP_", "MKL_", "ATEN_", "LD_", "DNNL_", "ONEDNN_", "OPENBLAS_",
                                    "TORCH", "PYTORCH_", "C10_", "MALLOC_", "GLIBC_", "CUDA_", "KINETO_"})
      if (variable.starts_with(begin)) found.insert(variable);
  }
  return found;
}

/// Whether a fork of that process is what a start here would be. Tests of kills (ZS_MARK) and of Slurm get the true
/// engine, whose process is a child of its launcher.
bool alike(pid_t other) {
  if (std::getenv("ZS_MARK") || std::getenv("SLURM_JOB_ID")) return false;
  const std::string mine = "/proc/self", theirs = "/proc/" + std::to_string(other);
  std::string environment;
  for (char** variable = environ; *variable; ++variable) environment.append(*variable).push_back('\0');
  std::set<std::string> served = early(read_all(theirs + "/environ"));
  std::erase_if(served, [](const std::string& variable) { return variable.starts_with("LD_PRELOAD="); });
  if (early(environment) != served) return false;
  for (const char* const file : {"/limits", "/cgroup"})
    if (read_all(mine + file) != read_all(theirs + file)) return false;
  for (const char* const file : {"/ns/mnt", "/ns/net", "/ns/pid", "/ns/user", "/ns/ipc", "/ns/uts", "/root"})
    if (!same_file((mine + file).c_str(), (theirs + file).c_str())) return false;
  return rights(mine) == rights(theirs);
}

/// A connection to what serves this engine; -1 for none.
int connected(const std::string& engine) {
  const std::string path = socket_of(engine);
  if (path.empty()) return -1;
  const int to = ::fcntl(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), F_DUPFD_CLOEXEC, kHigh);
  const sockaddr_un there = address(path.c_str());
  ucred peer{};
  socklen_t size = sizeof peer;
  if (to < 0 || ::connect(to, reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0 ||
      ::getsockopt(to, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      !same_file(("/proc/" + std::to_string(peer.pid) + "/exe").c_str(), engine.c_str()) || !alike(peer.pid))
    return -1;
  return to;
}

/// Sends what this process is; false if that was not possible.
bool sent(int argc, char** argv) {
  Request request;
  std::string text;
  for (int i = 0; i < argc; ++i) text.append(argv[i]).push_back('\0');
  for (char** variable = environ; *variable; ++variable)
    if (std::strncmp(*variable, kFolder, std::strlen(kFolder)) != 0) text.append(*variable).push_back('\0');
  request.bytes = static_cast<std::uint32_t>(text.size());
  request.arguments = static_cast<std::uint32_t>(argc);
  request.mask = ::umask(0), ::umask(request.mask);
  request.priority = ::getpriority(PRIO_PROCESS, 0);
  ::sched_getaffinity(0, sizeof request.processors, &request.processors);
  ::sigprocmask(SIG_SETMASK, nullptr, &request.blocked);
  for (int number = 1; number < SIGRTMIN; ++number) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) request.ignored |= 1ULL << number;
  }
  std::vector<int> files = {::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  request.numbers[0] = -1;
  for (int file = 0; file < kHigh; ++file) {
    const int flags = ::fcntl(file, F_GETFD);
    if (flags < 0 || flags & FD_CLOEXEC) continue;
    if (files.size() == kFiles) return false;
    request.numbers[files.size()] = file;
    files.push_back(file);
  }
  request.files = static_cast<std::uint32_t>(files.size());
  iovec part{&request, sizeof request};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFiles)> room{};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = room.data(), message.msg_controllen = CMSG_SPACE(sizeof(int) * files.size());
  cmsghdr* const attached = CMSG_FIRSTHDR(&message);
  attached->cmsg_level = SOL_SOCKET, attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof(int) * files.size());
  std::memcpy(CMSG_DATA(attached), files.data(), sizeof(int) * files.size());
  const bool began = files[0] >= 0 && ::sendmsg(server, &message, MSG_NOSIGNAL) == sizeof request;
  for (int number = 1; began && number < SIGRTMIN; ++number)
    if (number != SIGCHLD && !(request.ignored >> number & 1)) std::signal(number, forward);
  return began && ::send(server, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::string engine = target("/proc/self/exe");
  engine.replace(engine.rfind("-warm/"), std::strlen("-warm"), "");
  server = connected(engine);
  if (server < 0 || !sent(argc, argv)) {
    ::execv(engine.c_str(), argv);
    return 127;
  }
  std::int32_t status = 0;
  ssize_t got = 0;
  while ((got = ::recv(server, &status, sizeof status, MSG_WAITALL)) < 0 && errno == EINTR) continue;
  if (got != sizeof status) {
    (void)!::write(STDERR_FILENO, "tests/warm: the engine that serves has gone\n", 44);
    return 126;
  }
  if (WIFSIGNALED(status)) {
    std::signal(WTERMSIG(status), SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::kill(::getpid(), WTERMSIG(status));
  }
  return WEXITSTATUS(status);
}

#endif
