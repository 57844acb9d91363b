//===- ProcessesTest.cpp - what processes of a run tell each other -----------------===//
//
// Threads stand for processes: nothing but the connections is shared.
//
//===----------------------------------------------------------------------===//

#include "FreePort.h"

#include "dualpipe/Runtime/Processes.h"
#include "runtime/processes/Connection.h"

#include "test/unit/runtime/TestPrograms.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

using namespace dualpipe;
using namespace dualpipe::runtime;
using namespace dualpipe::test;
using testing::AnyOf;
using testing::HasSubstr;

namespace {

using Body = std::function<void(Processes &)>;

/// Runs `body` in so many "processes".
void together(uint32_t count, const Body &body, const ProcessTimes &times = {}) {
  const uint16_t port = findPort();
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank != count; ++rank)
    threads.emplace_back([=] {
      Result<std::unique_ptr<Processes>> processes =
          Processes::meet({rank, count, 0, "localhost", port}, {30, 0.2}, times);
      ASSERT_TRUE(processes.ok()) << processes.message();
      EXPECT_EQ((*processes)->collects(), rank == 0);
      EXPECT_EQ((*processes)->getPlace().rank, rank);
      body(**processes);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// Waits until rank 0 lets go.
void waitForTheEnd(Processes &processes) {
  if (processes.collects())
    return processes.finish();
  const Status status = processes.answer([](uint64_t) { return Result<Bytes>(Bytes()); });
  EXPECT_TRUE(status.ok()) << status.message();
}

/// What a session would hear.
struct Ear : Peers::Listener {
  void onPeerStep(uint32_t step, std::span<const MicrobatchLoss> losses) override {
    const std::lock_guard lock(mutex);
    heard += fmt::format("step {}:", step);
    for (const auto &[microbatch, loss] : losses)
      heard += fmt::format(" {}={}", microbatch, loss);
    heard += ";";
    changed.notify_all();
  }
  void onPeerFailure(Status status) override {
    const std::lock_guard lock(mutex);
    failure = status.message();
    changed.notify_all();
  }
  bool waitFor(const std::function<bool()> &isDone, double seconds = 20) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::duration<double>(seconds), isDone);
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::string heard, failure;
};

TEST(ProcessesTest, SharingAndGathering) {
  together(3, [](Processes &processes) {
    const uint32_t rank = processes.getPlace().rank;
    for (int round = 0; round != 3; ++round) {
      Result<std::vector<Bytes>> all = processes.gather({uint8_t(rank), uint8_t(round)});
      ASSERT_TRUE(all.ok()) << all.message();
      std::vector<Bytes> expected;
      for (uint8_t i = 0; i != 3 && rank == 0; ++i)
        expected.push_back({i, uint8_t(round)});
      EXPECT_EQ(*all, expected);
      Result<Bytes> shared = processes.share(rank == 0 ? Bytes(300000, 7) : Bytes{1});
      ASSERT_TRUE(shared.ok()) << shared.message();
      EXPECT_EQ(*shared, Bytes(300000, 7));
    }
    waitForTheEnd(processes);
  });
}

TEST(ProcessesTest, RankZeroFetches) {
  together(3, [](Processes &processes) {
    if (!processes.collects()) {
      const uint8_t rank = uint8_t(processes.getPlace().rank);
      EXPECT_TRUE(
          processes.answer([=](uint64_t item) { return Result<Bytes>(Bytes(item, rank)); }).ok());
      return;
    }
    for (const uint32_t rank : {2u, 1u, 2u}) {
      Result<Bytes> bytes = processes.fetch(rank, 5000000 * rank);
      ASSERT_TRUE(bytes.ok()) << bytes.message();
      EXPECT_EQ(*bytes, Bytes(5000000 * rank, uint8_t(rank)));
    }
    processes.finish();
  });
}

TEST(ProcessesTest, AFailureIsThatOfAll) {
  for (const uint32_t culprit : {0u, 2u})
    together(4, [=](Processes &processes) {
      Status own = Status::success();
      if (processes.getPlace().rank == culprit)
        own = Status::failure("out of luck");
      else
        own = processes.collects() ? processes.gather({}).getStatus()
                                   : processes.share({}).getStatus();
      EXPECT_EQ(processes.agreeOnFailure(own).message(),
                fmt::format("rank {} failed: out of luck", culprit));
      EXPECT_EQ(processes.gather({}).ok(), !processes.collects()); // nothing goes on
    });
}

/// Its number is not said twice.
TEST(ProcessesTest, AFailureThatNamesItsRank) {
  together(2, [](Processes &processes) {
    const Status own = processes.collects() ? processes.gather({}).getStatus()
                                            : Status::failure("rank 1: stream 3 has failed");
    EXPECT_EQ(processes.agreeOnFailure(own).message(), "rank 1: stream 3 has failed");
  });
}

TEST(ProcessesTest, WhoGoesAwayIsMissed) {
  for (const uint32_t victim : {0u, 1u})
    together(3, [=](Processes &processes) {
      if (processes.getPlace().rank == victim)
        return; // leaves
      const Status own =
          processes.collects() ? processes.gather({}).getStatus() : processes.share({}).getStatus();
      ASSERT_FALSE(own.ok());
      EXPECT_EQ(own.message(),
                fmt::format("rank {} went away: its process was killed or has crashed, or its "
                            "machine cannot be reached; its own output may say more",
                            victim));
    });
}

/// A process that has said why it fails, and goes away at once.
TEST(ProcessesTest, WhoSaysWhyIsNotMissed) {
  const auto body = [](Processes &processes) {
    if (processes.collects())
      EXPECT_EQ(processes.gather({}).message(), "rank 1 failed: no luck");
    else
      processes.fail(Status::failure("no luck"));
  };
  together(2, body, {.secondLookSeconds = 60});
}

/// Word of those who have lost a process may come before its end.
TEST(ProcessesTest, TheVerdictWaitsForTheEnd) {
  std::promise<void> hasCome;
  std::shared_future<void> come = hasCome.get_future();
  const auto body = [&](Processes &processes) {
    const uint32_t rank = processes.getPlace().rank;
    Ear ear;
    processes.listen(&ear);
    ASSERT_TRUE(processes.share({}).ok());
    if (rank == 2) {
      processes.listen(nullptr);
      return come.wait(); // and leaves
    }
    if (rank == 1) {
      processes.fail(Status::failure("ncclRemoteError"));
      processes.finishStep(0, {}); // comes after it
    } else {
      EXPECT_TRUE(ear.waitFor([&] { return !ear.heard.empty(); }));
      hasCome.set_value();
    }
    const Status status =
        rank == 0 ? processes.gather({}).getStatus() : processes.share({}).getStatus();
    EXPECT_THAT(status.message(), HasSubstr("rank 2 went away"));
    processes.listen(nullptr);
  };
  together(3, body, {.secondLookSeconds = 60});
}

/// Holds up the thread that receives, until it may go on.
struct Busy : Peers::Listener {
  void onPeerStep(uint32_t, std::span<const MicrobatchLoss>) override {
    isBusy.set_value();
    goesOn.get_future().wait();
  }
  void onPeerFailure(Status) override {}
  std::promise<void> isBusy, goesOn;
};

/// NCCL tells those who have lost a process, maybe sooner than its connection ends.
TEST(ProcessesTest, WhoIsKilledComesBeforeThoseWhoMissHim) {
  std::promise<void> hasFailed;
  const auto body = [&](Processes &processes) {
    const uint32_t rank = processes.getPlace().rank;
    Busy busy;
    processes.listen(&busy);
    ASSERT_TRUE(processes.share({}).ok());
    if (rank == 2) {
      processes.finishStep(0, {});
      return processes.leave();
    }
    if (rank == 0) {
      busy.isBusy.get_future().wait();
      hasFailed.get_future().wait(); // it is on its way, and the end of rank 2 follows its step
      busy.goesOn.set_value();
    } else {
      processes.fail(Status::failure("ncclRemoteError"));
      hasFailed.set_value();
    }
    const Status status =
        rank == 1 ? processes.share({}).getStatus() : processes.gather({}).getStatus();
    EXPECT_THAT(status.message(), HasSubstr("rank 2 went away"));
    processes.listen(nullptr);
  };
  together(3, body, {.secondLookSeconds = 60});
}

TEST(ProcessesTest, WhoDoesNotCome) {
  const auto body = [](Processes &processes) {
    if (!processes.collects()) { // stands still until it hears of it
      EXPECT_THAT(processes.share({}).message(), HasSubstr("rank 1 has not come to"));
      return;
    }
    EXPECT_EQ(processes.gather({}).message(),
              "rank 1 has not come to where ranks compare after 0.3 s; is its process stopped?");
  };
  together(2, body, {.patienceSeconds = 0.3});
}

/// One end of a run whose other end the test plays.
struct OneEnd {
  explicit OneEnd(uint32_t rank, const ProcessTimes &times = {}) {
    const uint16_t port = findPort();
    auto own = std::async(std::launch::async, [=] {
      return Processes::meet({rank, 2, 0, "localhost", port}, {30, 0.2}, times);
    });
    Result<std::vector<Socket>> sockets = meetAtMaster({1 - rank, 2, 0, "localhost", port}, {});
    Result<std::unique_ptr<Processes>> met = own.get();
    EXPECT_TRUE(sockets.ok() && met.ok()) << sockets.message() << met.message();
    processes = std::move(*met);
    other.emplace(rank, std::move(sockets->back()));
  }
  void say(MessageKind kind, const Bytes &bytes) {
    EXPECT_TRUE(other->send(kind, bytes.data(), bytes.size(), 30));
  }
  std::unique_ptr<Processes> processes;
  std::optional<Connection> other;
};

/// Nobody asks a process that is stopped: its connection stands.
TEST(ProcessesTest, NoSignOfLife) {
  for (const uint32_t rank : {0u, 1u}) {
    OneEnd end(rank, {.patienceSeconds = 0.1});
    Ear ear;
    end.processes->listen(&ear);
    EXPECT_TRUE(ear.waitFor([&] { return !ear.failure.empty(); }));
    EXPECT_EQ(ear.failure,
              fmt::format("rank {} has given no sign of life for 3.1 s; is its process "
                          "stopped?",
                          1 - rank));
    end.processes->listen(nullptr);
    end.other.reset();
  }
}

/// The end shows while something is awaited, or had shown before.
auto isGone(uint32_t rank) {
  const std::string name = "rank " + std::to_string(rank);
  return AnyOf(HasSubstr(name + " went away"), HasSubstr(name + " has left"));
}

/// What only the other side says is no word of anybody: its text is not obeyed.
TEST(ProcessesTest, WordsFromTheWrongSide) {
  const Bytes text = {'o', 'b', 'e', 'y'};
  for (const MessageKind kind :
       {MessageKind::Verdict, MessageKind::Finish, MessageKind::Share, MessageKind::Request}) {
    OneEnd hub(0);
    hub.say(kind, text);
    EXPECT_THAT(hub.processes->gather({}).message(), isGone(1));
  }
  for (const MessageKind kind : {MessageKind::Failure, MessageKind::Step, MessageKind::StandStill,
                                 MessageKind::Gather, MessageKind::Answer}) {
    OneEnd rank(1);
    rank.say(kind, text);
    EXPECT_THAT(rank.processes->share({}).message(), isGone(0));
  }
}

/// A request is a number.
TEST(ProcessesTest, ARequestForNothing) {
  OneEnd rank(1);
  rank.say(MessageKind::Request, {1, 2, 3});
  const Status status = rank.processes->answer([](uint64_t) { return Result<Bytes>(Bytes()); });
  EXPECT_THAT(status.message(), HasSubstr("rank 0 is at another point of the run than rank 1"));
}

TEST(ProcessesTest, AnotherPointOfTheRun) {
  together(2, [](Processes &processes) {
    if (!processes.collects()) {
      Ear ear;
      processes.listen(&ear);
      EXPECT_TRUE(processes.gather({}).ok());
      EXPECT_TRUE(ear.waitFor([&] { return !ear.failure.empty(); }));
      processes.listen(nullptr);
      return;
    }
    const Status status = processes.fetch(1, 0).getStatus();
    EXPECT_EQ(status.message(), "rank 1 is at another point of the run than rank 0: do both run "
                                "the same launcher?");
    processes.fail(status);
  });
}

TEST(ProcessesTest, AfterTheEnd) {
  together(2, [](Processes &processes) {
    waitForTheEnd(processes);
    if (processes.collects()) {
      EXPECT_EQ(processes.gather({}).message(), "rank 1 has left");
    }
  });
}

TEST(ProcessesTest, AnAnswerThatCannotBeFound) {
  together(2, [](Processes &processes) {
    if (processes.collects()) {
      EXPECT_EQ(processes.fetch(1, 3).message(), "rank 1 failed: there is no 3");
      return;
    }
    const Status status =
        processes.answer([](uint64_t) { return Result<Bytes>(Status::failure("there is no 3")); });
    EXPECT_EQ(processes.agreeOnFailure(status).message(), "rank 1 failed: there is no 3");
  });
}

TEST(ProcessesTest, StepsGoToRankZero) {
  together(2, [](Processes &processes) {
    Ear ear;
    processes.listen(&ear);
    EXPECT_TRUE(processes.share({}).ok()); // rank 0 listens
    if (processes.collects()) {
      processes.finishStep(0, {}); // its own are counted by who calls
      EXPECT_TRUE(ear.waitFor([&] { return ear.heard == "step 0: 3=1.5 1=-2;step 1:;"; }));
    } else {
      processes.finishStep(0, std::vector<MicrobatchLoss>{{3, 1.5}, {1, -2}});
      processes.finishStep(1, {});
    }
    processes.listen(nullptr);
    waitForTheEnd(processes);
    EXPECT_EQ(ear.failure, "");
  });
}

/// Only where all stand still is it a hang.
TEST(ProcessesTest, AllStandStill) {
  together(2, [](Processes &processes) {
    Ear ear;
    processes.listen(&ear);
    const auto rank = processes.getPlace().rank;
    const std::string own = fmt::format("rank {} waits", rank);
    const auto look = [&](const std::optional<std::string> &holdUp) {
      for (int i = 0; i != 3; ++i)
        processes.standStill(holdUp);
    };
    look(rank == 0 ? std::optional(own) : std::nullopt);
    EXPECT_TRUE(processes.gather({}).ok()); // nobody has failed
    EXPECT_TRUE(processes.share({}).ok());
    do
      look(own); // until the word of the other one has come
    while (!ear.waitFor([&] { return !ear.failure.empty(); }, 0.05));
    EXPECT_EQ(ear.failure, "no progress for 30 s; what each rank waits for:\n  rank 0 waits\n  "
                           "rank 1 waits");
    processes.listen(nullptr);
  });
}

/// A rank that stood still and then finished is shown so; its end is no look of its own.
TEST(ProcessesTest, WhoHasFinishedIsShownSo) {
  together(2, [](Processes &processes) {
    Ear ear;
    processes.listen(&ear);
    const bool isHub = processes.collects();
    if (!isHub)
      processes.standStill("rank 1 waits");
    EXPECT_TRUE(processes.gather({}).ok()); // its word has come
    for (int i = 0; i != 3; ++i)
      processes.finishRun(fmt::format("rank {} has finished", processes.getPlace().rank));
    EXPECT_TRUE(processes.share({}).ok());
    EXPECT_TRUE(processes.gather({}).ok()); // nobody has failed
    for (int i = 0; i != 2 && isHub; ++i)
      processes.standStill("rank 0 waits");
    EXPECT_TRUE(ear.waitFor([&] { return !ear.failure.empty(); }));
    EXPECT_EQ(ear.failure, "no progress for 30 s; what each rank waits for:\n  rank 0 waits\n  "
                           "rank 1 has finished");
    processes.listen(nullptr);
  });
}

/// Whoever listens too late is told at once.
TEST(ProcessesTest, AFailureOfBefore) {
  together(2, [](Processes &processes) {
    if (!processes.collects()) {
      processes.fail(Status::failure("no luck"));
      EXPECT_FALSE(processes.share({}).ok());
      return;
    }
    EXPECT_FALSE(processes.gather({}).ok());
    Ear ear;
    processes.listen(&ear);
    EXPECT_EQ(ear.failure, "rank 1 failed: no luck");
    processes.listen(nullptr);
  });
}

/// In a process of its own, which has no stacks of threads left that have ended.
TEST(ProcessesTest, NoThread) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need the memory that is taken away here";
#endif
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] {
    const rlimit limit{1, 1}; // no room for the stack of a thread
    setrlimit(RLIMIT_AS, &limit);
    const auto processes = Processes::meet({0, 1, 0, "localhost", 0}, {});
    std::fprintf(stderr, "%s\n", processes.ok() ? "met" : processes.message().c_str());
    std::_Exit(processes.ok() ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(1),
              "cannot start the thread that listens to other processes: ");
}

TEST(ProcessesTest, WhatAllRanksShare) {
  const program::Program program = buildPipelines({.numRanks = 2});
  const uint64_t digest = digestShared(program.shared);
  program::SharedInfo other = program.shared;
  other.locations.clear();
  other.phaseNames = {"another"};
  other.files = {"elsewhere"};
  EXPECT_EQ(digestShared(other), digest);
  other.channels[0].digest ^= 1;
  EXPECT_NE(digestShared(other), digest);
  other = program.shared;
  other.pipelines[0].placement[0] ^= 1;
  EXPECT_NE(digestShared(other), digest);

  program::RankProgram rank;
  rank.reductions = {{0, 1}, {0, 2}, {1, 3}};
  for (const uint32_t index : {0u, 1u, 2u})
    rank.commands.push_back({program::CommandOp::Reduce, 0, index, 0});
  const auto first = digestReductions(rank);
  EXPECT_EQ(first.size(), 2u);
  std::swap(rank.commands[0], rank.commands[1]);
  const auto second = digestReductions(rank);
  EXPECT_NE(second.at(0), first.at(0));
  EXPECT_EQ(second.at(1), first.at(1));
}

} // namespace
