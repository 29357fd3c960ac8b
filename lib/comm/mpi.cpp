// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"
#include "comm/launch.hpp"
#include "comm/message_group.hpp"
#include "comm/mpi_transport.hpp"
#include "comm/shared_collective.hpp"
#include "comm/shared_memory.hpp"
#include "comm/tree.hpp"

namespace zs::comm {
namespace {

// Bytes up to which a collective goes by messages, which MPI then copies at once: a rank waits once for the others,
// through shared memory twice.
constexpr std::int64_t kSmall = 8 << 10;

// MPI's ranks: through shared memory if they are all on one host, by messages if not.
class MpiGroup : public MessageGroup {
 public:
  MpiGroup(std::unique_ptr<MpiTransport> transport, const Options& options)
      : MessageGroup(std::move(transport), options), comm_(mpi_transport().comm()) {
    memory_ = SharedMemory::create(comm_);
    if (!memory_) return;
    board_ = std::make_shared<Board>(*memory_, comm_);
    mpi_transport().sleep_with([board = board_](int microseconds) { board->sleep(microseconds); });
  }

  // Freeing windows and MPI_Finalize wait without a deadline: go there only with all ranks.
  ~MpiGroup() override {
    if (!mpi_transport().in_step()) return;
    try {
      exchange({}, "end of the group");
      if (memory_) memory_->release();
    } catch (const Error&) {
      // The launcher ends a job whose ranks leave without MPI_Finalize.
      mpi_transport().fail("left without the others");
    }
  }

  std::shared_ptr<std::byte> allocate(std::int64_t bytes) override;

 protected:
  std::unique_ptr<Collective> make_reduce_scatter(const float* full, float* mine, std::int64_t n,
                                                  const std::string& what) override;
  std::unique_ptr<Collective> make_all_gather(const void* mine, void* full, std::int64_t n, std::size_t element_size,
                                              const std::string& what) override;

 private:
  MpiTransport& mpi_transport() const { return static_cast<MpiTransport&>(transport()); }
  std::unique_ptr<Collective> shared(const Entry& entry, SharedCollective::Work work,
                                     std::unique_ptr<Collective> messages) {
    return std::make_unique<SharedCollective>(memory_, board_, number_++, entry, std::move(work), std::move(messages));
  }

  MPI_Comm comm_;
  std::shared_ptr<SharedMemory> memory_;  // null if the ranks are on several hosts
  std::shared_ptr<Board> board_;
  std::int64_t number_ = 0;  // of the next collective through shared memory
};

std::shared_ptr<std::byte> MpiGroup::allocate(std::int64_t bytes) {
  auto block = memory_ ? memory_->allocate(bytes) : nullptr;
  return block ? block : MessageGroup::allocate(bytes);
}

std::unique_ptr<Collective> MpiGroup::make_reduce_scatter(const float* full, float* mine, std::int64_t n,
                                                          const std::string& what) {
  auto messages = MessageGroup::make_reduce_scatter(full, mine, n, what);
  if (!memory_ || n * std::int64_t{sizeof(float)} <= kSmall) return messages;
  const Slice own = slice(n, rank(), size());
  const auto work = [mine, own](const std::vector<const std::byte*>& data) {
    std::vector<const float*> leaves(data.size());
    std::transform(data.begin(), data.end(), leaves.begin(),
                   [&](const std::byte* full) { return reinterpret_cast<const float*>(full) + own.begin; });
    tree_sum(leaves, mine, own.size());
  };
  return shared({0, n, memory_->locate(full, n * std::int64_t{sizeof(float)})}, work, std::move(messages));
}

std::unique_ptr<Collective> MpiGroup::make_all_gather(const void* mine, void* full, std::int64_t n,
                                                      std::size_t element_size, const std::string& what) {
  // This already puts `mine` into its place in `full`.
  auto messages = MessageGroup::make_all_gather(mine, full, n, element_size, what);
  if (!memory_ || n * static_cast<std::int64_t>(element_size) <= kSmall) return messages;
  const auto bytes_of = [n, ranks = size(), element = static_cast<std::int64_t>(element_size)](int rank) {
    const Slice part = slice(n, rank, ranks);
    return Slice{part.begin * element, part.end * element};
  };
  auto* place = static_cast<std::byte*>(full);
  const auto work = [bytes_of, place, rank = rank()](const std::vector<const std::byte*>& data) {
    for (std::size_t i = 1; i < data.size(); ++i) {
      const std::size_t from = (static_cast<std::size_t>(rank) + i) % data.size();
      const Slice theirs = bytes_of(static_cast<int>(from));
      std::copy_n(data[from], theirs.size(), place + theirs.begin);
    }
  };
  const Slice own = bytes_of(rank());
  std::int64_t source = memory_->locate(mine, own.size());
  if (source == SharedMemory::kNowhere) source = memory_->locate(place + own.begin, own.size());
  return shared({static_cast<std::int64_t>(element_size), n, source}, work, std::move(messages));
}

}  // namespace

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
  return std::make_unique<MpiGroup>(std::move(transport), options);
}

void abort_job() noexcept {
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (initialised && !finalised) end_job(MPI_COMM_WORLD);
}

}  // namespace zs::comm
