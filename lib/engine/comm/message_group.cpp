// SPDX-License-Identifier: Apache-2.0
#include "comm/message_group.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "device/tensor.hpp"
#include "device/tree.hpp"

namespace zs::comm {
namespace {

using device::View;
using Messages = std::vector<std::unique_ptr<Message>>;

// Drops the messages that are complete; true if there was one.
bool collect(Messages& messages) {
  bool moved = false;
  for (auto& message : messages) {
    if (message && message->done()) message.reset(), moved = true;
  }
  return moved;
}

bool complete(const Messages& messages) {
  return std::none_of(messages.begin(), messages.end(), [](const auto& message) { return message != nullptr; });
}

// The places of the messages that are not complete, as ranks.
std::vector<int> unfinished(const Messages& messages, std::size_t ranks) {
  std::vector<int> late;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = rank; i < messages.size(); i += ranks) {
      if (messages[i] && (late.empty() || late.back() != static_cast<int>(rank)))
        late.push_back(static_cast<int>(rank));
    }
  }
  return late;
}

// Sends pieces of my data to each of the others, a few at a time, and receives theirs. Pieces of one rank arrive in
// order.
class MessageCollective : public Collective {
 public:
  MessageCollective(Progress& progress, std::string what)
      : Collective(std::move(what)),
        transport_(progress.transport()),
        rank_(transport_.rank()),
        ranks_(transport_.size()),
        tag_(progress.next_tag()) {}

  std::vector<int> late() const override {
    const auto ranks = static_cast<std::size_t>(ranks_);
    const std::vector<int> from = unfinished(incoming_, ranks);
    return from.empty() ? unfinished(outgoing_, ranks) : from;
  }

 protected:
  // The other ranks, nearest first upwards, so that not all send to rank 0 at once.
  int other(int i) const { return (rank_ + i) % ranks_; }

  // At the first free index of this rank.
  void put(Messages& messages, int rank, std::unique_ptr<Message> message) const {
    std::size_t i = static_cast<std::size_t>(rank);
    while (i < messages.size() && messages[i]) i += static_cast<std::size_t>(ranks_);
    if (i >= messages.size()) messages.resize(i + 1);
    messages[i] = std::move(message);
  }

  Transport& transport_;
  const int rank_, ranks_, tag_;
  Messages incoming_, outgoing_;
};

class ReduceScatter : public MessageCollective {
 public:
  ReduceScatter(Progress& progress, const Summands& summands, const View& mine, const std::string& what)
      : MessageCollective(progress, what),
        progress_(progress),
        summands_(summands),
        mine_(mine),
        own_(slice(summands.count, rank_, ranks_)),
        terms_(static_cast<std::int64_t>(summands.addends.count())),
        own_terms_(static_cast<std::int64_t>(summands.terms.size())) {
    for (int rank = 0; rank < ranks_; ++rank)
      senders_.insert(senders_.end(), summands.addends.terms[static_cast<std::size_t>(rank)].size(), rank);
    if (ranks_ == 1) {
      tree_sums(summands_.addends, summands_.terms, parts_of_sums(mine, summands.addends.sums.size(), own_, own_));
      return;
    }
    piece_ = std::clamp(kInFlight / std::max<std::int64_t>(1, terms_ - own_terms_), std::int64_t{8} << 10,
                        std::int64_t{128} << 10);
    pieces_ = pieces(own_);
    incoming_.resize(static_cast<std::size_t>(kWindow * terms_));
    outgoing_.resize(static_cast<std::size_t>(kWindow * own_terms_ * ranks_));
    sent_.resize(static_cast<std::size_t>(ranks_));
    for (int i = 1; i < ranks_ && own_terms_ > 0; ++i) unsent_ += pieces(slice(summands.count, other(i), ranks_));
  }

  bool advance() override {
    if (!scratch_) scratch_ = progress_.scratch(kWindow * terms_ * piece_ * device::size(summands_.type));
    bool moved = collect(outgoing_);
    for (int i = 1; i < ranks_ && own_terms_ > 0; ++i) moved |= send(other(i));
    moved |= collect(incoming_);
    for (; received_ < pieces_ && received_ - added_ < kWindow; ++received_) {
      for (std::int64_t term = 0; term < terms_; ++term) receive(term);
      moved = true;
    }
    while (added_ < received_ && arrived(added_)) {
      add();
      moved = true;
    }
    return moved;
  }

  bool done() const override { return added_ == pieces_ && unsent_ == 0 && complete(outgoing_); }

  std::vector<int> late() const override {
    std::vector<int> from;
    for (std::size_t i = 0; i < incoming_.size(); ++i) {
      if (incoming_[i]) from.push_back(senders_[i % senders_.size()]);
    }
    std::sort(from.begin(), from.end());
    from.erase(std::unique(from.begin(), from.end()), from.end());
    return from.empty() ? unfinished(outgoing_, static_cast<std::size_t>(ranks_)) : from;
  }

 private:
  static constexpr std::int64_t kWindow = 2;                          // pieces of each term under way at once
  static constexpr std::int64_t kInFlight = std::int64_t{512} << 10;  // numbers of all terms, in one piece

  std::int64_t pieces(Slice part) const { return (part.size() + piece_ - 1) / piece_; }
  Slice piece_of(Slice part, std::int64_t piece) const {
    return {part.begin + piece * piece_, std::min(part.end, part.begin + (piece + 1) * piece_)};
  }
  /// The index of a term's piece among the pieces of all terms, or of this rank's pieces for another rank.
  std::size_t at(std::int64_t piece, std::int64_t term) const {
    return static_cast<std::size_t>((piece % kWindow) * terms_ + term);
  }
  std::size_t at(std::int64_t piece, std::int64_t term, int to) const {
    return static_cast<std::size_t>(((piece % kWindow) * own_terms_ + term) * ranks_ + to);
  }
  View arrival(std::int64_t piece, std::int64_t term) const {
    const auto begin = static_cast<std::int64_t>(at(piece, term)) * piece_;
    return scratch_.view(summands_.type, begin + piece_).part(begin, begin + piece_of(own_, piece).size());
  }
  int sender(std::int64_t term) const { return senders_[static_cast<std::size_t>(term)]; }

  bool send(int to) {
    const Slice theirs = slice(summands_.count, to, ranks_);
    std::int64_t& sent = sent_[static_cast<std::size_t>(to)];
    bool moved = false;
    for (; sent < pieces(theirs); ++sent, --unsent_) {
      for (std::int64_t term = 0; term < own_terms_; ++term) {
        if (outgoing_[at(sent, term, to)]) return moved;
      }
      const Slice piece = piece_of(theirs, sent);
      for (std::int64_t term = 0; term < own_terms_; ++term) {
        const View part = summands_.terms[static_cast<std::size_t>(term)].part(piece.begin, piece.end);
        outgoing_[at(sent, term, to)] = transport_.send(to, tag_, part.data, part.bytes());
      }
      moved = true;
    }
    return moved;
  }

  void receive(std::int64_t term) {
    if (sender(term) == rank_) return;
    const View to = arrival(received_, term);
    incoming_[at(received_, term)] = transport_.receive(sender(term), tag_, to.data, to.bytes());
  }

  bool arrived(std::int64_t piece) const {
    for (std::int64_t term = 0; term < terms_; ++term) {
      if (incoming_[at(piece, term)]) return false;
    }
    return true;
  }

  void add() {
    const Slice part = piece_of(own_, added_);
    std::vector<View> terms;
    std::size_t used = 0;
    for (std::int64_t term = 0; term < terms_; ++term)
      terms.push_back(sender(term) == rank_ ? summands_.terms[used++].part(part.begin, part.end)
                                            : arrival(added_, term));
    tree_sums(summands_.addends, terms, parts_of_sums(mine_, summands_.addends.sums.size(), own_, part));
    ++added_;
  }

  Progress& progress_;
  Summands summands_;
  View mine_;
  Slice own_;
  std::int64_t terms_, own_terms_;         // of all ranks, of this one
  std::vector<int> senders_;               // by term
  std::int64_t piece_ = 1, pieces_ = 0;    // numbers in a piece; pieces of my slice
  std::int64_t received_ = 0, added_ = 0;  // pieces asked for; pieces added
  std::int64_t unsent_ = 0;                // pieces, to all ranks
  std::vector<std::int64_t> sent_;         // pieces by rank
  device::Buffer scratch_;
};

// Moves `bytes` bytes as messages of the largest size.
template <typename Move>
void in_pieces(std::int64_t bytes, Move move) {
  for (std::int64_t begin = 0; begin < bytes; begin += kMessageBytes)
    move(begin, std::min(kMessageBytes, bytes - begin));
}

// Sends data to each of the others and receives theirs: the same number of pieces with the same sizes, in one order.
// With `tells_nothing` an empty part is a message too, so that a rank that expects more reports it.
class Trade : public MessageCollective {
 public:
  using Parts = std::function<std::vector<View>(int rank)>;
  Trade(Progress& progress, Parts outgoing, Parts incoming, const std::string& what, bool tells_nothing = false)
      : MessageCollective(progress, what),
        from_(std::move(outgoing)),
        into_(std::move(incoming)),
        tells_nothing_(tells_nothing) {
    const std::vector<View> into = into_(rank_), from = from_(rank_);
    for (std::size_t i = 0; i < into.size(); ++i) device::copy(into[i], from[i]);
    started_ = ranks_ == 1;
  }

  bool advance() override {
    if (!started_) {
      start();
      return started_ = true;
    }
    const bool received = collect(incoming_);
    return collect(outgoing_) || received;
  }

  bool done() const override { return started_ && complete(incoming_) && complete(outgoing_); }

 private:
  void start() {
    for (int i = 1; i < ranks_; ++i) {
      const int from = other(ranks_ - i), to = other(i);
      for (const View& theirs : into_(from)) {
        const auto receive = [&](std::int64_t begin, std::int64_t size) {
          put(incoming_, from, transport_.receive(from, tag_, theirs.data + begin, size));
        };
        in_pieces(theirs.bytes(), receive);
        if (theirs.count == 0 && tells_nothing_) receive(0, 0);
      }
      for (const View& view : from_(to)) {
        const auto send = [&](std::int64_t begin, std::int64_t size) {
          put(outgoing_, to, transport_.send(to, tag_, view.data + begin, size));
        };
        in_pieces(view.bytes(), send);
        if (view.count == 0 && tells_nothing_) send(0, 0);
      }
    }
  }

  Parts from_, into_;
  bool tells_nothing_, started_ = false;
};

// Each blob follows its length.
class Exchange : public MessageCollective {
 public:
  Exchange(Progress& progress, const std::string& blob, const std::string& what, std::vector<std::string>& blobs)
      : MessageCollective(progress, what), blobs_(blobs), sizes_(blobs.size()), announced_(blobs.size()) {
    blobs_[index(rank_)] = blob;
    sizes_[index(rank_)] = static_cast<std::int64_t>(blob.size());
    announced_[index(rank_)] = true;
    started_ = ranks_ == 1;
  }

  bool advance() override {
    if (!started_) {
      start();
      return started_ = true;
    }
    const bool sent = collect(outgoing_);
    const bool received = collect(incoming_);
    for (int i = 1; i < ranks_; ++i) {
      const std::size_t from = index(other(i));
      if (announced_[from] || incoming_[from]) continue;
      announced_[from] = true;
      blobs_[from].resize(static_cast<std::size_t>(sizes_[from]));
      in_pieces(sizes_[from], [&](std::int64_t begin, std::int64_t size) {
        put(incoming_, other(i), transport_.receive(other(i), tag_, blobs_[from].data() + begin, size));
      });
    }
    return sent || received;
  }

  bool done() const override {
    return started_ && complete(incoming_) && complete(outgoing_) &&
           std::find(announced_.begin(), announced_.end(), false) == announced_.end();
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  void start() {
    const std::string& blob = blobs_[index(rank_)];
    for (int i = 1; i < ranks_; ++i) {
      const int from = other(ranks_ - i), to = other(i);
      put(incoming_, from, transport_.receive(from, tag_, &sizes_[index(from)], sizeof(std::int64_t)));
      put(outgoing_, to, transport_.send(to, tag_, &sizes_[index(rank_)], sizeof(std::int64_t)));
      in_pieces(static_cast<std::int64_t>(blob.size()), [&](std::int64_t begin, std::int64_t size) {
        put(outgoing_, to, transport_.send(to, tag_, blob.data() + begin, size));
      });
    }
  }

  std::vector<std::string>& blobs_;
  std::vector<std::int64_t> sizes_;
  std::vector<bool> announced_;  // by rank: the length is here
  bool started_ = false;
};

}  // namespace

View part_of(const View& full, int rank, int ranks) {
  const Slice part = slice(full.count, rank, ranks);
  return full.part(part.begin, part.end);
}

device::Buffer MessageGroup::allocate(std::int64_t bytes) { return device::allocate(device(), bytes); }

std::unique_ptr<Collective> MessageGroup::make_reduce_scatter(const Summands& summands, const View& mine,
                                                              const std::string& what) {
  return std::make_unique<ReduceScatter>(*progress_, summands, mine, what);
}

std::unique_ptr<Collective> MessageGroup::make_all_gather(std::span<const Gathered> gathers, const std::string& what) {
  std::vector<View> fulls;
  for (const Gathered& one : gathers) fulls.push_back(one.full);
  const auto places = [fulls, ranks = size()](int rank) {
    std::vector<View> parts;
    for (const View& full : fulls) parts.push_back(part_of(full, rank, ranks));
    return parts;
  };
  const std::vector<View> locals = places(rank());
  for (std::size_t i = 0; i < locals.size(); ++i) device::copy(locals[i], gathers[i].mine);
  return std::make_unique<Trade>(
      *progress_, [locals](int) { return locals; }, places, what);
}

Work MessageGroup::reduce_scatter(const Summands& summands, const View& mine, const std::string& what) {
  const auto terms = static_cast<std::int64_t>(summands.terms.size());
  count([&](int rank) { return terms * slice(summands.count, rank, size()).size() * device::size(summands.type); });
  return Progress::start(progress_, make_reduce_scatter(summands, mine, what));
}

Work MessageGroup::all_gather_coalesced(std::span<const Gathered> gathers, const std::string& what) {
  std::int64_t bytes = 0;
  for (const Gathered& one : gathers) bytes += one.mine.bytes();
  count([&](int) { return bytes; });
  return Progress::start(progress_, make_all_gather(gathers, what));
}

std::unique_ptr<Collective> MessageGroup::make_all_to_all(std::span<const View> to, std::span<const View> from,
                                                          const std::string& what) {
  const auto parts = [](std::span<const View> views) {
    return [views = std::vector(views.begin(), views.end())](int rank) {
      return std::vector{views[static_cast<std::size_t>(rank)]};
    };
  };
  return std::make_unique<Trade>(*progress_, parts(to), parts(from), what, /*tells_nothing=*/true);
}

Work MessageGroup::all_to_all(std::span<const View> to, std::span<const View> from, const std::string& what) {
  require_parts(*this, to, from, what);
  count([&](int rank) { return to[static_cast<std::size_t>(rank)].bytes(); });
  return Progress::start(progress_, make_all_to_all(to, from, what));
}

void MessageGroup::count(const std::function<std::int64_t(int)>& bytes) {
  ++collectives_;
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    bytes_sent_ += bytes(other);
    if (host(other) != host(rank())) bytes_between_nodes_ += bytes(other);
  }
}

std::unique_ptr<Group> MessageGroup::split(int colour, const std::string& what) {
  const std::vector<int> colours = exchange_values(*this, colour, what);
  std::vector<int> members;
  for (int rank = 0; rank < size(); ++rank) {
    if (colours[static_cast<std::size_t>(rank)] == colour) members.push_back(rank);
  }
  return make(progress_->split(members));
}

std::vector<std::string> MessageGroup::all_gather_object(const std::string& blob, const std::string& what) {
  std::vector<std::string> blobs(static_cast<std::size_t>(size()));
  Progress::start(progress_, std::make_unique<Exchange>(*progress_, blob, what, blobs))->wait();
  return blobs;
}

}  // namespace zs::comm
