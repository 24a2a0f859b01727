#include "dist/comm/mpi_world.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "dist/comm/host_sockets.h"
#include "dist/comm/message_transport.h"
#include "dist/comm/shared_board.h"

namespace sherd {

namespace {

template <class T>
std::vector<T> told_by_all(const T& mine, int ranks) {
  std::vector<T> all(static_cast<size_t>(ranks));
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
  return all;
}

using Text = std::array<char, 512>;

Text text(const std::string& s) {
  Text t{};
  s.copy(t.data(), t.size() - 1);
  return t;
}

/// What the ranks tell each other first.
struct Hello {
  Text name{}, kernel{}, processes{};  // of the host
  int32_t process = 0;
  const int64_t* word = nullptr;  // holds the process's number
};

/// What a host's first rank made for it.
struct HostMade {
  BoardHandle world, near;
  HostAddress address;
};

Hello hello_of(const int64_t* word) {
  Hello mine;
  gethostname(mine.name.data(), mine.name.size() - 1);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  mine.kernel = text(boot);
  const ssize_t n = readlink("/proc/self/ns/pid", mine.processes.data(), mine.processes.size() - 1);
  if (n < 0) mine.processes = {};
  mine.process = getpid();
  mine.word = word;
  return mine;
}

std::vector<Host> hosts_of(const std::vector<Hello>& all, int ranks_per_host) {
  std::vector<Host> hosts;
  std::map<std::array<std::string, 3>, std::vector<size_t>> known;  // a machine's, in order
  for (size_t r = 0; r < all.size(); ++r) {
    const Hello& h = all[r];
    auto& those = known[{h.name.data(), h.kernel.data(), h.processes.data()}];
    const bool full =
        those.empty() || (ranks_per_host > 0 &&
                          hosts[those.back()].ranks.size() == static_cast<size_t>(ranks_per_host));
    if (full) {
      const std::string number = those.empty() ? "" : detail::concat(".", those.size() + 1);
      those.push_back(hosts.size());
      hosts.push_back({h.name.data() + number, {}});
    }
    hosts[those.back()].ranks.push_back(static_cast<int>(r));
  }
  return hosts;
}

}  // namespace

MpiWorld meet_world(int rank, int ranks, int ranks_per_host) {
  let_siblings_read();
  const int64_t word = getpid();
  const auto all = told_by_all(hello_of(&word), ranks);
  MpiWorld world;
  world.hosts = hosts_of(all, ranks_per_host);
  const auto is_here = [&](const Host& h) {
    return std::count(h.ranks.begin(), h.ranks.end(), rank);
  };
  world.mine = static_cast<int>(std::find_if(world.hosts.begin(), world.hosts.end(), is_here) -
                                world.hosts.begin());
  const std::vector<int>& near = world.near_ranks();
  const auto num_near = static_cast<int>(near.size());
  const bool leads = near.front() == rank;
  const bool several = world.hosts.size() > 1;

  std::string trouble;
  const auto attempt = [&](const auto& body) {
    if (!trouble.empty()) return;
    try {
      body();
    } catch (const std::exception& e) {
      trouble = e.what();
    }
  };
  std::unique_ptr<NewBoard> made_world, made_near;
  std::unique_ptr<HostListener> listener;
  HostMade mine;
  attempt([&] {
    if (!leads) return;
    made_world = std::make_unique<NewBoard>(ranks);
    mine.world = mine.near = made_world->handle();
    if (!several) return;
    made_near = std::make_unique<NewBoard>(num_near);
    mine.near = made_near->handle();
    listener = std::make_unique<HostListener>();
    mine.address = listener->address();
  });
  const auto made = told_by_all(mine, ranks);
  std::vector<FileHandle> sockets;
  attempt([&] {
    std::map<int, int32_t> ids;
    for (const int r : near) ids[r] = all[static_cast<size_t>(r)].process;
    world.processes = std::make_shared<Processes>(ids, rank);
    for (const int r : near) {
      const Hello& h = all[static_cast<size_t>(r)];
      int64_t seen = 0;
      const PeerMemory::Piece number{h.word, &seen, sizeof seen};
      world.processes->read(r, {&number, 1});
      check(seen == h.process, "rank", r, "is not process", h.process,
            "here: the ranks of a host must see each other's processes");
    }
    const HostMade& here = made[static_cast<size_t>(near.front())];
    if (here.near.fd < 0 || here.world.fd < 0) return;  // its rank says why
    world.board = leads ? made_world->board() : open_board(here.world, ranks);
    world.near = world.board;
    if (several) world.near = leads ? made_near->board() : open_board(here.near, num_near);
    if (!listener) return;
    std::vector<HostAddress> addresses;
    std::vector<std::string> names;
    for (const Host& h : world.hosts) {
      addresses.push_back(made[static_cast<size_t>(h.ranks.front())].address);
      names.push_back(h.name);
    }
    sockets = connect_hosts(*listener, addresses, names, world.mine);
  });
  // Nobody's word, and no first rank's file, is let go of before all have seen it.
  for (const Text& t : told_by_all(text(trouble), ranks)) {
    if (t[0] == '\0') continue;
    MPI_Finalize();
    throw Error(ErrorKind::comm, t.data());
  }
  if (!several) return world;
  // From here on an error of MPI's is one of ours.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  world.messages = std::make_shared<MpiMessages>(ranks);
  if (leads)
    world.links = std::make_unique<HostLinks>(HostLinks::Options{.hosts = world.hosts,
                                                                 .mine = world.mine,
                                                                 .world = world.board,
                                                                 .processes = world.processes},
                                              std::move(sockets));
  return world;
}

bool MpiWorld::all_ended() const {
  return std::all_of(hosts.begin(), hosts.end(), [&](const Host& h) {
    return std::all_of(h.ranks.begin(), h.ranks.end(), [&](int r) { return board->ended(r); });
  });
}

bool MpiWorld::all_over() const {
  return std::all_of(hosts.begin(), hosts.end(), [&](const Host& h) {
    return std::all_of(h.ranks.begin(), h.ranks.end(),
                       [&](int r) { return board->ended(r) || processes->is_gone(r); });
  });
}

MpiTransports::MpiTransports(const MpiWorld& world, double timeout_s)
    : world_(world), timeout_s_(timeout_s) {}

std::unique_ptr<Transport> MpiTransports::world(const std::vector<int>& ranks, int me) const {
  return over(world_.near, near_of(ranks), ranks, me);
}

std::unique_ptr<Transport> MpiTransports::make(Communicator& parent,
                                               const std::vector<int>& members,
                                               const std::vector<int>& ranks, int me) {
  const CallTag tag{.unit = "subgroup"};
  const std::vector<int> near = near_of(ranks);
  const auto num_near = static_cast<int>(near.size());
  std::unique_ptr<NewBoard> made;
  BoardHandle mine;
  if (me == near[0]) {
    made = std::make_unique<NewBoard>(num_near);
    mine = made->handle();
  }
  const auto all = exchange_one(parent, mine, tag);
  const int maker = members[static_cast<size_t>(near[0])];
  auto board = made ? made->board() : open_board(all[static_cast<size_t>(maker)], num_near);
  // All have opened it before its maker lets go of the file.
  parent.barrier(tag);
  return over(std::move(board), near, ranks, me);
}

std::vector<int> MpiTransports::near_of(const std::vector<int>& ranks) const {
  const std::vector<int>& here = world_.near_ranks();
  std::vector<int> near;
  for (size_t i = 0; i < ranks.size(); ++i)
    if (std::binary_search(here.begin(), here.end(), ranks[i])) near.push_back(static_cast<int>(i));
  return near;
}

std::unique_ptr<Transport> MpiTransports::over(std::shared_ptr<Board> board,
                                               const std::vector<int>& near,
                                               const std::vector<int>& ranks, int me) const {
  const Waiting waiting{.world = world_.board,
                        .timeout_s = timeout_s_,
                        .lost_rank = [processes = world_.processes] { return processes->gone(); }};
  std::vector<int> near_ranks;
  for (const int i : near) near_ranks.push_back(ranks[static_cast<size_t>(i)]);
  const auto my_place = std::find(near.begin(), near.end(), me) - near.begin();
  auto local = std::make_unique<BoardTransport>(waiting, std::move(board), world_.processes,
                                                std::move(near_ranks), static_cast<int>(my_place));
  if (near.size() == ranks.size()) return local;
  return std::make_unique<MessageTransport>(waiting, std::move(local), near, world_.messages, ranks,
                                            me);
}

}  // namespace sherd
