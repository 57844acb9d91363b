//===- RendezvousTest.cpp - how processes of a run find each other -----------------===//

#include "FreePort.h"

#include "dualpipe/Runtime/Rendezvous.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <future>
#include <map>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace dualpipe;
using namespace dualpipe::runtime;
using namespace dualpipe::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

std::map<std::string, std::string> variables;
const char *getVariable(const char *name) {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : found->second.c_str();
}

void setAll() {
  variables = {{"RANK", "3"},
               {"WORLD_SIZE", "8"},
               {"LOCAL_RANK", "1"},
               {"MASTER_ADDR", "node7"},
               {"MASTER_PORT", "29500"}};
}

std::string complain() { return readProcessPlace(getVariable).message(); }

TEST(RendezvousTest, TheEnvironment) {
  variables.clear();
  Result<std::optional<ProcessPlace>> alone = readProcessPlace(getVariable);
  ASSERT_TRUE(alone.ok());
  EXPECT_FALSE(*alone);
  setAll();
  Result<std::optional<ProcessPlace>> place = readProcessPlace(getVariable);
  ASSERT_TRUE(place.ok()) << place.message();
  EXPECT_EQ((*place)->rank, 3u);
  EXPECT_EQ((*place)->worldSize, 8u);
  EXPECT_EQ((*place)->localRank, 1u);
  EXPECT_EQ((*place)->address, "node7");
  EXPECT_EQ((*place)->port, 29500);
  variables["DUALPIPE_PORT"] = "29501";
  EXPECT_EQ((*readProcessPlace(getVariable))->port, 29501);
  variables = {{"RANK", "0"}, {"WORLD_SIZE", "1"}}; // needs nobody
  alone = readProcessPlace(getVariable);
  ASSERT_TRUE(alone.ok()) << alone.message();
  EXPECT_FALSE(*alone);
}

TEST(RendezvousTest, AnEnvironmentThatMakesNoSense) {
  setAll();
  variables.erase("LOCAL_RANK");
  EXPECT_THAT(complain(), HasSubstr("LOCAL_RANK is not set: a run of several processes needs RANK, "
                                    "WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT"));
  setAll();
  variables["MASTER_PORT"] = "99999";
  EXPECT_EQ(complain(), "MASTER_PORT is '99999', expected a whole number from 0 to 65535");
  setAll();
  variables["RANK"] = "8";
  EXPECT_EQ(complain(), "RANK is 8 and WORLD_SIZE is 8, expected a rank below it");
  setAll();
  variables.erase("MASTER_ADDR");
  EXPECT_EQ(complain(), "MASTER_ADDR is not set: the name or address of the machine of rank 0");
}

/// A socket that listens at a port which was free.
int listenSomewhere(uint16_t &port) {
  const int number = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(number, reinterpret_cast<sockaddr *>(&address), size), 0);
  EXPECT_EQ(listen(number, 1), 0);
  EXPECT_EQ(getsockname(number, reinterpret_cast<sockaddr *>(&address), &size), 0);
  port = ntohs(address.sin_port);
  return number;
}

using Sockets = std::vector<Socket>;

/// Rank 0 lingers only for those who have not been told.
Result<Sockets> meet(ProcessPlace place, double timeout = 30, double linger = 20) {
  return meetAtMaster(place, {.timeoutSeconds = timeout, .lingerSeconds = linger});
}

std::future<Result<Sockets>> come(ProcessPlace place, double timeout = 30, double linger = 20) {
  return std::async(std::launch::async, [=] { return meet(place, timeout, linger); });
}

TEST(RendezvousTest, AllAreConnectedToRankZero) {
  const uint16_t port = findPort();
  std::vector<std::future<Result<Sockets>>> ranks;
  for (const uint32_t rank : {3u, 1u, 0u, 2u}) // rank 0 need not be the first
    ranks.push_back(come({rank, 4, 0, "localhost", port}));
  std::vector<Result<Sockets>> got;
  for (std::future<Result<Sockets>> &rank : ranks) {
    got.push_back(rank.get());
    ASSERT_TRUE(got.back().ok()) << got.back().message();
  }
  const Sockets &hub = *got[2];
  ASSERT_EQ(hub.size(), 4u);
  EXPECT_FALSE(hub[0].isOpen());
  for (const auto &[rank, at] : {std::pair(1, 1), std::pair(2, 3), std::pair(3, 0)}) {
    ASSERT_EQ(got[size_t(at)]->size(), 1u);
    ASSERT_TRUE(sendAll(got[size_t(at)]->front(), &rank, sizeof rank, 30));
    int said = 0;
    ASSERT_TRUE(receiveAll(hub[size_t(rank)], &said, sizeof said, 30));
    EXPECT_EQ(said, rank);
  }
}

/// All who have come are told, and those who come a little later.
TEST(RendezvousTest, RanksThatDoNotFit) {
  uint16_t port = findPort();
  auto master = come({0, 3, 0, "localhost", port});
  const std::string text = "rank 1 has WORLD_SIZE 4, rank 0 has 3";
  EXPECT_EQ(meet({1, 4, 0, "localhost", port}).message(), "rank 0 says: " + text);
  EXPECT_EQ(meet({2, 3, 0, "localhost", port}).message(), "rank 0 says: " + text);
  EXPECT_EQ(master.get().message(), text);

  port = findPort();
  auto second = come({0, 3, 0, "localhost", port});
  auto first = come({1, 3, 0, "localhost", port});
  auto again = come({1, 3, 0, "localhost", port});
  EXPECT_EQ(second.get().message(), "two processes came as rank 1");
  EXPECT_EQ(first.get().message(), "rank 0 says: two processes came as rank 1");
  EXPECT_EQ(again.get().message(), "rank 0 says: two processes came as rank 1");

  port = findPort();
  auto third = come({0, 3, 0, "localhost", port}, 30, 0.2); // rank 2 never comes
  EXPECT_EQ(meet({5, 3, 0, "localhost", port}).message(),
            "rank 0 says: a process came as rank 5, expected 1 to 2");
  EXPECT_FALSE(third.get().ok());
}

/// What a process says when it comes, as Rendezvous.cpp has it.
struct RawHello {
  uint64_t magic = 0x6475616c70697065ull;
  uint32_t version = 3, rank = 1, worldSize = 2, reserved = 0;
};

/// Comes, says `hello` and goes away.
void comeAndGo(uint16_t port, const RawHello &hello) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  int number = -1;
  do { // until rank 0 listens
    if (number >= 0)
      close(number);
    number = socket(AF_INET, SOCK_STREAM, 0);
  } while (connect(number, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0);
  EXPECT_EQ(send(number, &hello, sizeof hello, 0), ssize_t(sizeof hello));
  close(number);
}

TEST(RendezvousTest, AnotherVersionAndOneThatGoesAway) {
  uint16_t port = findPort();
  auto master = come({0, 2, 0, "localhost", port});
  comeAndGo(port, {.version = 2});
  EXPECT_EQ(master.get().message(), "rank 1 runs another version of the launcher");

  port = findPort();
  auto again = come({0, 3, 0, "localhost", port});
  comeAndGo(port, {.rank = 1, .worldSize = 3});
  auto other = come({2, 3, 0, "localhost", port});
  EXPECT_EQ(again.get().message(), "rank 1 went away while ranks met");
  EXPECT_EQ(other.get().message(), "rank 0 says: rank 1 went away while ranks met");
}

/// A scan of ports says something else, and is let go.
TEST(RendezvousTest, StrangersAreLetGo) {
  const uint16_t port = findPort();
  auto master = come({0, 2, 0, "localhost", port});
  comeAndGo(port, {.magic = 1});
  const Result<Sockets> got = meet({1, 2, 0, "localhost", port});
  ASSERT_TRUE(got.ok()) << got.message();
  EXPECT_TRUE(master.get().ok());
}

TEST(RendezvousTest, WhoIsMissing) {
  const uint16_t port = findPort();
  auto one = come({1, 4, 0, "localhost", port});
  const std::string text =
      fmt::format("after 3 s rank 0 still waits for ranks 2, 3 at port {}", port);
  EXPECT_EQ(meet({0, 4, 0, "localhost", port}, 3, 0.2).message(), text);
  EXPECT_EQ(one.get().message(), "rank 0 says: " + text);
  EXPECT_THAT(meet({1, 2, 0, "localhost", port}, 0.2).message(),
              HasSubstr("rank 1 cannot reach rank 0 at localhost:"));
}

/// Somebody listens, and never says anything.
TEST(RendezvousTest, NoAnswer) {
  uint16_t port = 0;
  const int listener = listenSomewhere(port);
  EXPECT_THAT(meet({1, 2, 0, "localhost", port}, 0.2).message(),
              AllOf(HasSubstr("rank 1 has no answer from rank 0 at localhost:"),
                    HasSubstr(": it has failed, or waits for other ranks for longer than 0.2 s")));
  close(listener);
}

/// The queue of who listens is full, as a machine that drops packets would look: the kernel itself
/// would try for two minutes.
TEST(RendezvousTest, NobodyAccepts) {
  uint16_t port = 0;
  const int listener = listenSomewhere(port);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  std::vector<Socket> queue;
  for (int i = 0; i != 8; ++i) { // the queue takes two
    queue.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    (void)connect(queue.back().get(), reinterpret_cast<sockaddr *>(&address), sizeof address);
  }
  EXPECT_EQ(meet({1, 2, 0, "127.0.0.1", port}, 0.5).message(),
            fmt::format("rank 1 cannot reach rank 0 at 127.0.0.1:{} within 0.5 s: Connection timed "
                        "out",
                        port));
  close(listener);
}

TEST(RendezvousTest, APortInUseAndAnUnknownName) {
  uint16_t port = 0;
  const int listener = listenSomewhere(port);
  EXPECT_THAT(meet({0, 2, 0, "localhost", port}, 1).message(),
              HasSubstr("; set DUALPIPE_PORT to a free port on all ranks"));
  close(listener);
  EXPECT_THAT(meet({1, 2, 0, "no-such-machine.invalid", port}, 1).message(),
              HasSubstr("cannot find the address of MASTER_ADDR 'no-such-machine.invalid'"));
}

} // namespace
