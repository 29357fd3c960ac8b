// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_transport.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "base/error.hpp"
#include "base/host.hpp"

namespace zs::comm {
namespace {

using HostName = std::array<char, 256>;

class MpiMessage : public Message {
 public:
  MpiMessage() = default;
  ~MpiMessage() override {
    if (request_ == MPI_REQUEST_NULL) return;
    MPI_Cancel(&request_);
    MPI_Request_free(&request_);
  }
  bool done() override {
    int arrived = 0;
    MPI_Status status;
    check_mpi(MPI_Test(&request_, &arrived, &status), "MPI_Test");
    if (!arrived || from_ < 0) return arrived;
    int bytes = 0;
    check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    if (bytes != bytes_)
      throw Error(length_text(from_, static_cast<std::size_t>(bytes), static_cast<std::size_t>(bytes_)));
    return true;
  }

  MPI_Request request_ = MPI_REQUEST_NULL;
  int from_ = -1;  // of a receive
  int bytes_ = 0;
};

// The name that the cluster knows it by, where there is one.
HostName node_name() {
  HostName name{};
  const char* node = std::getenv("SLURMD_NODENAME");
  (node ? node : host_name()).copy(name.data(), name.size() - 1);
  return name;
}

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(std::string(call) + ": " + std::string(text.data(), static_cast<std::size_t>(length)));
}

void end_job(MPI_Comm comm) {
  const int status = static_cast<int>(Status::failed);
  std::fflush(nullptr);
  // Open MPI's mpirun ends a job when a rank exits in this way. Its own path for MPI_Abort is worse: mpirun 4.1 may
  // itself crash when several ranks take it at once, and then returns another status.
  if (std::getenv("OMPI_COMM_WORLD_SIZE")) std::_Exit(status);
  MPI_Abort(comm, status);
  std::_Exit(status);
}

namespace {

/// All ranks of MPI, which is started for it.
MPI_Comm started_mpi() {
  int initialised = 0, provided = 0;
  check_mpi(MPI_Initialized(&initialised), "MPI_Initialized");
  if (initialised) throw Error("MPI was started before in this process: it can hold one group only");
  // Ranks may share cores: one that waits inside MPI must let the others run.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_SERIALIZED) throw Error("this MPI was built without support for threads");
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  return comm;
}

}  // namespace

MpiTransport::MpiTransport() : MpiTransport(started_mpi()) { whole_ = true; }

MpiTransport::MpiTransport(MPI_Comm comm) : comm_(comm) {
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  sleep_ = [](int microseconds) { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); };
  const HostName host = node_name();
  std::vector<HostName> hosts(static_cast<std::size_t>(size_));
  constexpr int kBytes = sizeof(HostName);
  check_mpi(MPI_Allgather(host.data(), kBytes, MPI_CHAR, hosts.data(), kBytes, MPI_CHAR, comm_), "MPI_Allgather");
  for (const HostName& name : hosts) hosts_.emplace_back(name.data());
  shares_core_ = std::count(hosts.begin(), hosts.end(), host) > sysconf(_SC_NPROCESSORS_ONLN);
}

// Spins, unless the ranks share cores; yields; then sleeps for ever longer times up to half a millisecond. A rank that
// sleeps costs the others nothing, and the system runs it sooner once it wakes.
void MpiTransport::idle(int rounds) {
  const int spin = shares_core_ ? 0 : 200, yield = spin + (shares_core_ ? 20 : 300);
  if (rounds < spin) return;
  if (rounds < yield) {
    sched_yield();
    return;
  }
  sleep_(std::min(500, 20 + (rounds - yield)));
}

bool MpiTransport::in_step() const { return !failed_ && std::uncaught_exceptions() == 0; }

MpiTransport::~MpiTransport() {
  if (!in_step()) return;
  MPI_Comm_free(&comm_);
  if (whole_) MPI_Finalize();
}

std::unique_ptr<Transport> MpiTransport::split(const std::vector<int>& members) {
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(comm_, members.front(), rank_, &part), "MPI_Comm_split");
  return std::make_unique<MpiTransport>(part);
}

std::unique_ptr<Message> MpiTransport::send(int to, int tag, const void* data, std::int64_t bytes) {
  auto message = std::make_unique<MpiMessage>();
  check_mpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, comm_, &message->request_), "MPI_Isend");
  return message;
}

std::unique_ptr<Message> MpiTransport::receive(int from, int tag, void* data, std::int64_t bytes) {
  auto message = std::make_unique<MpiMessage>();
  message->from_ = from;
  message->bytes_ = static_cast<int>(bytes);
  check_mpi(MPI_Irecv(data, message->bytes_, MPI_BYTE, from, tag, comm_, &message->request_), "MPI_Irecv");
  return message;
}

void MpiTransport::abort() { end_job(comm_); }

}  // namespace zs::comm
