#include "dist/comm/mpi_messages.h"

#include <mpi.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "base/error.h"

namespace sherd {

namespace {

// A message is long enough to be worth its handshake, and short enough that some end often.
constexpr size_t kMessageBytes = 256 << 10;
// Of a rank, in each direction, on their way at once.
constexpr int kMostAtOnce = 4;
constexpr int kTag = 1;

void check_mpi(int result, const char* what) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  fail_as(ErrorKind::comm, "cannot", detail::concat(what, " by MPI: ", text));
}

/// A place of bytes and how many.
struct Place {
  std::byte* at;
  size_t bytes;
};
using Message = std::vector<Place>;

/// Several places as one value of MPI's.
MPI_Datatype type_of(const Message& message) {
  std::vector<int> lengths;
  std::vector<MPI_Aint> places;
  for (const Place& place : message) {
    MPI_Aint at = 0;
    MPI_Get_address(place.at, &at);
    places.push_back(at);
    lengths.push_back(static_cast<int>(place.bytes));
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  check_mpi(MPI_Type_create_hindexed(static_cast<int>(message.size()), lengths.data(),
                                     places.data(), MPI_BYTE, &type),
            "describe a message");
  check_mpi(MPI_Type_commit(&type), "describe a message");
  return type;
}

}  // namespace

struct MpiMessages::Peer {
  struct Queue {
    std::deque<Message> waiting;
    int on_way = 0;

    /// The pieces as messages, which both sides cut alike.
    template <class Pieces, class PlaceOf>
    size_t add(const Pieces& pieces, const PlaceOf& place_of) {
      const size_t before = waiting.size();
      size_t room = 0;
      for (const auto& piece : pieces) {
        Place left{place_of(piece), piece.bytes};
        while (left.bytes > 0) {
          if (room == 0) {
            waiting.emplace_back();
            room = kMessageBytes;
          }
          const size_t n = std::min(left.bytes, room);
          waiting.back().push_back({left.at, n});
          left = {left.at + n, left.bytes - n};
          room -= n;
        }
      }
      return waiting.size() - before;
    }
  };
  Queue sends, receives;

  Queue& queue(bool sending) { return sending ? sends : receives; }
};

struct MpiMessages::Requests {
  struct Owner {
    int rank;
    bool sends;
  };
  std::vector<MPI_Request> all;
  std::vector<Owner> owners;  // of each of them
  std::vector<int> ended;
};

MpiMessages::MpiMessages(int ranks)
    : peers_(static_cast<size_t>(ranks)), requests_(std::make_unique<Requests>()) {}

MpiMessages::~MpiMessages() = default;

void MpiMessages::send(int rank, std::span<const PeerMemory::Piece> pieces) {
  open_ += peers_[static_cast<size_t>(rank)].sends.add(pieces, [](const PeerMemory::Piece& p) {
    return static_cast<std::byte*>(const_cast<void*>(p.from));
  });
  begin(rank, true);
}

void MpiMessages::receive(int rank, std::span<const PeerMemory::Piece> pieces) {
  open_ += peers_[static_cast<size_t>(rank)].receives.add(
      pieces, [](const PeerMemory::Piece& p) { return static_cast<std::byte*>(p.to); });
  begin(rank, false);
}

void MpiMessages::begin(int rank, bool sends) {
  Peer::Queue& queue = peers_[static_cast<size_t>(rank)].queue(sends);
  while (!queue.waiting.empty() && queue.on_way < kMostAtOnce) {
    const Message message = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    const bool scattered = message.size() > 1;
    MPI_Datatype type = scattered ? type_of(message) : MPI_BYTE;
    void* const at = scattered ? MPI_BOTTOM : message[0].at;
    const int count = scattered ? 1 : static_cast<int>(message[0].bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    // A synchronous send ends when the receiver has begun: then nothing is left that would go on
    // only while this rank calls MPI.
    const int result = sends ? MPI_Issend(at, count, type, rank, kTag, MPI_COMM_WORLD, &request)
                             : MPI_Irecv(at, count, type, rank, kTag, MPI_COMM_WORLD, &request);
    if (scattered) MPI_Type_free(&type);
    check_mpi(result, sends ? "send" : "receive");
    requests_->all.push_back(request);
    requests_->owners.push_back({rank, sends});
    ++queue.on_way;
  }
}

bool MpiMessages::progress() {
  check(abandoned_.empty(), "messages go on after an error");
  auto& [all, owners, ended] = *requests_;
  bool any = false;
  for (;;) {
    if (all.empty()) return any;
    ended.resize(all.size());
    int count = 0;
    check_mpi(MPI_Testsome(static_cast<int>(all.size()), all.data(), &count, ended.data(),
                           MPI_STATUSES_IGNORE),
              "exchange messages");
    if (count <= 0) return any;
    any = true;
    std::vector<Requests::Owner> next;
    for (int i = 0; i < count; ++i) {
      const Requests::Owner owner = owners[static_cast<size_t>(ended[static_cast<size_t>(i)])];
      --peers_[static_cast<size_t>(owner.rank)].queue(owner.sends).on_way;
      --open_;
      next.push_back(owner);
    }
    // Those that ended are null now.
    size_t kept = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] == MPI_REQUEST_NULL) continue;
      all[kept] = all[i];
      owners[kept++] = owners[i];
    }
    all.resize(kept);
    owners.resize(kept);
    for (const auto& owner : next) begin(owner.rank, owner.sends);
  }
}

bool MpiMessages::received(int rank) const {
  const auto& queue = peers_[static_cast<size_t>(rank)].receives;
  return queue.waiting.empty() && queue.on_way == 0;
}

bool MpiMessages::idle() const { return open_ == 0; }

void MpiMessages::abandon(std::shared_ptr<const void> memory) {
  abandoned_.push_back(std::move(memory));
}

}  // namespace sherd
