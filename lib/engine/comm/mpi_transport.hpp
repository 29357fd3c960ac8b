// SPDX-License-Identifier: Apache-2.0
// MPI's ranks as a transport: non-blocking messages between two ranks, errors as zs::Error.
#pragma once
#define OMPI_SKIP_MPICXX 1  // the C++ bindings that MPI 3 removed
#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace zs::comm {

/// Throws zs::Error with MPI's own text unless `code` is success. `call` names the function.
void check_mpi(int code, const char* call);

/// Ends the job with status 2.
[[noreturn]] void end_job(MPI_Comm comm);

/// Initialises MPI, and finalises it in the destructor, unless the group has failed or an exception is in progress:
/// then the other ranks would not take part.
class MpiTransport : public Transport {
 public:
  MpiTransport();
  /// For a part of MPI's ranks; neither initialises nor finalises. Frees `comm`.
  explicit MpiTransport(MPI_Comm comm);
  ~MpiTransport() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& host(int rank) const override { return hosts_[static_cast<std::size_t>(rank)]; }
  std::unique_ptr<Message> send(int to, int tag, const void* data, std::int64_t bytes) override;
  std::unique_ptr<Message> receive(int from, int tag, void* data, std::int64_t bytes) override;
  void idle(int rounds) override;
  void fail(const std::string&) noexcept override { failed_ = true; }
  void abort() override;
  std::unique_ptr<Transport> split(const std::vector<int>& members) override;

  MPI_Comm comm() const { return comm_; }
  /// Sets how idle() sleeps, so that it can be woken. Takes microseconds.
  void sleep_with(std::function<void(int)> sleep) { sleep_ = std::move(sleep); }
  /// False if the destructor will not finalise.
  bool in_step() const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  bool whole_ = false, failed_ = false, shares_core_ = false;
  std::vector<std::string> hosts_;
  std::function<void(int)> sleep_;
};

}  // namespace zs::comm
