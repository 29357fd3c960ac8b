// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "base/error.hpp"
#include "comm/launch.hpp"
#include "comm/message_group.hpp"
#include "comm/mpi_transport.hpp"

namespace zs::comm {

std::unique_ptr<Group> mpi(const Options& options) {
  const Launch started = launch([](const char* name) { return std::getenv(name); });
  if (started.tasks == 1) return alone(options);  // starting MPI for one rank takes longer than it is worth
  if (!started.connected) throw Error(singletons_text(started));
  auto transport = std::make_unique<MpiTransport>();
  if (started.tasks > 1 && transport->size() != started.tasks) {
    throw Error(transport->size() == 1 ? singletons_text(started)
                                       : started.by + " started " + std::to_string(started.tasks) +
                                             " tasks, but MPI sees " + std::to_string(transport->size()));
  }
  return std::make_unique<MessageGroup>(std::move(transport), options);
}

void abort_job() noexcept {
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (initialised && !finalised) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(Status::failed));
}

}  // namespace zs::comm
