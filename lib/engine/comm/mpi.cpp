// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"
#include "base/number.hpp"
#include "comm/message_group.hpp"
#include "comm/mpi_transport.hpp"
#include "comm/shared_collective.hpp"
#include "comm/shared_memory.hpp"
#include "comm/start.hpp"
#include "comm/store_transport.hpp"
#include "device/tree.hpp"

namespace zs::comm {
namespace {

using device::View;

// Bytes up to which a collective goes by messages, which MPI then copies at once: a rank waits once for the others,
// through shared memory twice.
constexpr std::int64_t kSmall = 8 << 10;

// MPI's ranks: through shared memory if they are all on one host, by messages if not.
class MpiGroup : public MessageGroup {
 public:
  explicit MpiGroup(std::shared_ptr<Progress> progress)
      : MessageGroup(std::move(progress)), comm_(mpi_transport().comm()) {
    memory_ = SharedMemory::create(comm_);
    if (!memory_) return;
    table_ = std::make_shared<CollectiveTable>(*memory_, comm_);
    mpi_transport().sleep_with([table = table_](int microseconds) { table->sleep(microseconds); });
  }

  // Freeing windows and MPI_Finalize wait without a deadline: go there only with all ranks.
  ~MpiGroup() override {
    if (!mpi_transport().in_step()) return;
    try {
      all_gather_object({}, "end of the group");
      if (memory_) memory_->release();
    } catch (const Error&) {
      // The launcher ends a job whose ranks leave without MPI_Finalize.
      mpi_transport().fail("left without the others");
    }
  }

  device::Buffer allocate(std::int64_t bytes) override;

 protected:
  std::unique_ptr<Group> make(std::shared_ptr<Progress> progress) const override {
    return std::make_unique<MpiGroup>(std::move(progress));
  }
  std::unique_ptr<Collective> make_reduce_scatter(const Summands& summands, const View& mine,
                                                  const std::string& what) override;
  std::unique_ptr<Collective> make_all_gather(std::span<const Gathered> gathers, const std::string& what) override;
  std::unique_ptr<Collective> make_all_to_all(std::span<const View> to, std::span<const View> from,
                                              const std::string& what) override;

 private:
  MpiTransport& mpi_transport() const { return static_cast<MpiTransport&>(transport()); }
  std::unique_ptr<Collective> shared(const Entry& entry, SharedCollective::Work work,
                                     std::unique_ptr<Collective> messages) {
    return std::make_unique<SharedCollective>(memory_, table_, number_++, entry, std::move(work), std::move(messages));
  }

  MPI_Comm comm_;
  std::shared_ptr<SharedMemory> memory_;  // null if the ranks are on several hosts
  std::shared_ptr<CollectiveTable> table_;
  std::int64_t number_ = 0;  // of the next collective through shared memory
};

device::Buffer MpiGroup::allocate(std::int64_t bytes) {
  auto block = memory_ ? memory_->allocate(bytes) : nullptr;
  return block ? device::counted(std::move(block), bytes, device()) : MessageGroup::allocate(bytes);
}

std::unique_ptr<Collective> MpiGroup::make_reduce_scatter(const Summands& summands, const View& mine,
                                                          const std::string& what) {
  auto messages = MessageGroup::make_reduce_scatter(summands, mine, what);
  const std::size_t most = summands.addends.most();
  if (!memory_ || summands.count * device::size(summands.type) <= kSmall || most > Entry::kMostParts) return messages;
  const Slice part = slice(summands.count, rank(), size());
  const auto work = [summands, mine, part, most](const std::vector<std::byte*>& data) {
    std::vector<View> terms;
    for (std::size_t rank = 0; rank < summands.addends.terms.size(); ++rank) {
      for (std::size_t i = 0; i < summands.addends.terms[rank].size(); ++i)
        terms.push_back(
            View{data[rank * most + i], summands.count, summands.type, mine.device}.part(part.begin, part.end));
    }
    tree_sums(summands.addends, terms, parts_of_sums(mine, summands.addends.sums.size(), part, part));
  };
  // Leaves the memory of missing terms unchanged: it is never read.
  Entry entry{Entry::Kind::reduce_scatter, summands.type, summands.count, most, {}};
  for (std::size_t i = 0; i < summands.terms.size(); ++i)
    entry.data[i] = memory_->locate(summands.terms[i].data, summands.terms[i].bytes());
  return shared(entry, work, std::move(messages));
}

std::unique_ptr<Collective> MpiGroup::make_all_gather(std::span<const Gathered> gathers, const std::string& what) {
  // This already puts each `mine` into its place in `full`.
  auto messages = MessageGroup::make_all_gather(gathers, what);
  std::int64_t bytes = 0;
  for (const Gathered& one : gathers) bytes += one.full.bytes();
  if (!memory_ || bytes <= kSmall || gathers.size() > Entry::kMostParts) return messages;
  std::vector<View> fulls;
  for (const Gathered& one : gathers) fulls.push_back(one.full);
  const auto work = [fulls, rank = rank(), ranks = size()](const std::vector<std::byte*>& data) {
    for (int i = 1; i < ranks; ++i) {
      const int from = (rank + i) % ranks;
      for (std::size_t part = 0; part < fulls.size(); ++part) {
        const View theirs = part_of(fulls[part], from, ranks);
        std::copy_n(data[static_cast<std::size_t>(from) * fulls.size() + part], theirs.bytes(), theirs.data);
      }
    }
  };
  Entry entry{Entry::Kind::all_gather, gathers.front().full.type, 0, gathers.size(), {}};
  for (std::size_t part = 0; part < gathers.size(); ++part) {
    const View local = part_of(fulls[part], rank(), size());
    entry.count += fulls[part].count;
    entry.data[part] = memory_->locate(gathers[part].mine.data, local.bytes());
    if (entry.data[part] == SharedMemory::kNotShared) entry.data[part] = memory_->locate(local.data, local.bytes());
  }
  return shared(entry, work, std::move(messages));
}

// Uses shared memory for parts of any size: a rank does not know the sizes of the others' parts.
std::unique_ptr<Collective> MpiGroup::make_all_to_all(std::span<const View> to, std::span<const View> from,
                                                      const std::string& what) {
  // This already copies what is for this rank itself.
  auto messages = MessageGroup::make_all_to_all(to, from, what);
  const auto ranks = static_cast<std::size_t>(size());
  if (!memory_ || ranks > Entry::kMostParts) return messages;
  const auto work = [into = std::vector(from.begin(), from.end()), rank = static_cast<std::size_t>(rank()),
                     ranks](const std::vector<std::byte*>& data) {
    for (std::size_t i = 1; i < ranks; ++i) {
      const std::size_t other = (rank + i) % ranks;
      std::copy_n(data[other * ranks + rank], into[other].bytes(), into[other].data);
    }
  };
  Entry entry{Entry::Kind::all_to_all, to.front().type, 0, ranks, {}};
  for (std::size_t i = 0; i < ranks; ++i) {
    entry.to[i] = to[i].bytes(), entry.from[i] = from[i].bytes();
    // An empty part is never read, so its address does not matter.
    entry.data[i] = to[i].count == 0 ? 0 : memory_->locate(to[i].data, to[i].bytes());
  }
  return shared(entry, work, std::move(messages));
}

int count_of(const char* text) {
  const auto count = text ? parse_int(text) : std::nullopt;
  return count && *count > 0 ? static_cast<int>(*count) : 0;
}

}  // namespace

Launch launch(const Environment& get) {
  const bool pmix = get("PMIX_RANK") != nullptr;
  const bool pmi = get("PMI_RANK") || get("PMI_FD");
  // mpirun first: below it, the variables of the step that started its daemons may show through.
  if (const int tasks = count_of(get("OMPI_COMM_WORLD_SIZE"))) return {"mpirun", tasks, pmix};
  if (const int tasks = count_of(get("PMI_SIZE"))) return {"PMI", tasks, true};
  // Only srun sets SLURM_STEP_NUM_TASKS; SLURM_NTASKS and SLURM_PROCID are there in the batch script's shell too.
  const int tasks = get("SLURM_STEP_ID") && get("SLURM_PROCID") ? count_of(get("SLURM_STEP_NUM_TASKS")) : 0;
  if (tasks > 0) return {"srun", tasks, pmix || pmi};
  if (pmix) return {"PMIx", 0, true};
  // Variables that PyTorch's launchers set (torchrun, accelerate, deepspeed). A launch of one process is like no
  // launch.
  const int processes = get("RANK") && get("LOCAL_RANK") && get("MASTER_ADDR") ? count_of(get("WORLD_SIZE")) : 0;
  if (processes > 1) return {get("TORCHELASTIC_RUN_ID") ? "torchrun" : "a launcher of PyTorch", processes, true, true};
  return {};
}

std::string singletons_text(const Launch& launch) {
  const std::string tasks = std::to_string(launch.tasks);
  return launch.by + " started " + tasks + " tasks, but MPI sees one: each would be rank 0 of 1; " +
         (launch.by == "srun" ? "start them with srun --mpi=pmix (srun --mpi=list shows what the cluster has) or mpirun"
                              : "start them with the mpirun of the MPI that this program was built with");
}

std::unique_ptr<Group> mpi(const Options& options) {
  const Launch started = launch([](const char* name) { return std::getenv(name); });
  if (started.tasks == 1) return single(options);  // starting MPI for one rank takes longer than it is worth
  if (started.by_pytorch) {
    // Its ranks have no MPI between them, and a store.
    auto transport = std::make_unique<StoreTransport>(options.timeout);
    return std::make_unique<MessageGroup>(std::make_shared<Progress>(std::move(transport), options));
  }
  if (!started.connected) throw Error(singletons_text(started));
  auto transport = std::make_unique<MpiTransport>();
  if (started.tasks > 1 && transport->size() != started.tasks) {
    throw Error(transport->size() == 1 ? singletons_text(started)
                                       : started.by + " started " + std::to_string(started.tasks) +
                                             " tasks, but MPI sees " + std::to_string(transport->size()));
  }
  return std::make_unique<MpiGroup>(std::make_shared<Progress>(std::move(transport), options));
}

void abort_job() noexcept {
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (initialised && !finalised) end_job(MPI_COMM_WORLD);
}

}  // namespace zs::comm
