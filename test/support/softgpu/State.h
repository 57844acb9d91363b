//===- State.h - what GPUs made of software consist of -------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_SOFTGPU_STATE_H
#define DUALPIPE_TEST_SUPPORT_SOFTGPU_STATE_H

#include "Clock.h"
#include "Shadow.h"
#include "SoftGpu.h"

#include "runtime/models/CounterRandom.h"

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace dualpipe::test::softgpu {

using namespace runtime::cuda;

struct SoftStream;
struct SoftComm;
struct Clique;
struct Capture;
struct GraphRun;
class Bridge;
class Link;

using models::Dice;

/// One record of an event.
struct Record {
  bool done = false;
  Clock clock;
  std::chrono::steady_clock::time_point time; ///< when it ran
  /// Where it was recorded in a stream that was captured: the capture, and its number there.
  std::shared_ptr<Capture> capture;
  size_t number = 0;
};

struct SoftEvent {
  std::shared_ptr<Record> last; ///< in host order
  bool timing = false;
};

enum class PartKind { Send, Recv, AllGather, AllReduce };

/// One call of NCCL inside a group.
struct Part {
  PartKind kind;
  int peer = 0; ///< of a send or receive
  const void *from = nullptr;
  void *to = nullptr;
  size_t count = 0;
  NcclType type = NcclType::Int8;
  SoftStream *stream = nullptr;
  uint64_t number = 0; ///< among those with the same peer and direction, or among collectives
  bool eager = false;
  bool captured = false; ///< both ends of a transfer are, or none
  bool done = false;
};

/// What a group does on one communicator: one operation of one stream.
struct NcclTask {
  SoftComm *comm = nullptr;
  SoftStream *stream = nullptr;
  std::vector<Part> parts;
  bool started = false;
  bool cancelled = false;
  Clock clock; ///< once started
  std::shared_ptr<const std::string> name;

  bool isDone() const {
    for (const Part &part : parts)
      if (!part.done)
        return false;
    return true;
  }
};

/// Data of a send that has ended before its receive was there.
struct InFlight {
  bool captured = false;
  std::vector<unsigned char> data;
  Clock clock;
};

/// A collective of a communicator with ranks in several processes.
struct Collective {
  std::map<int, std::vector<unsigned char>> inputs; ///< by rank
  size_t numDone = 0;                               ///< members of this process that have ended it
};

/// A communicator as all its ranks share it.
struct Clique {
  explicit Clique(size_t numRanks) : members(numRanks), gpus(numRanks, -1), here(numRanks) {}
  /// A rank has joined.
  void addGpu(int rank, int gpu);
  /// Whether the rank has joined from this process.
  bool isHere(int rank) const;
  bool spansProcesses() const;

  size_t number = 0;
  std::vector<SoftComm *> members; ///< null until they come, and once they have gone
  std::vector<int> gpus;           ///< -1 until they come
  std::vector<bool> here;
  int numJoined = 0;
  bool refused = false; ///< two ranks on one GPU
  /// By (source, destination): sent and not received, by number.
  std::map<std::pair<int, int>, std::map<uint64_t, InFlight>> inFlight;

  // Where some ranks are in other processes (Bridge.h).
  uint32_t id = 0;
  Link *maker = nullptr;         ///< to the process that made the id, where that is another one
  std::map<int, Link *> remotes; ///< there: to the ranks of other processes
  /// Receives that have begun elsewhere: from, to, number, whether of a captured graph.
  std::set<std::tuple<int, int, uint64_t, bool>> posted;
  std::map<uint64_t, Collective> collectives;
};

struct SoftComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int gpu = 0;
  std::deque<std::shared_ptr<NcclTask>> order; ///< in host order
  std::map<int, uint64_t> numSends, numRecvs;  ///< by peer
  uint64_t numCollectives = 0;
  uint32_t inProgress = 0;
  NcclStatus error = NcclStatus::Success;
  bool aborted = false;
};

enum class OpKind { Work, Record, Wait, Nccl, Graph };

/// What stands in a stream.
struct Op {
  OpKind kind = OpKind::Work;
  std::shared_ptr<const std::string> name;
  std::function<void()> run;      ///< Work
  std::vector<SoftUse> uses;      ///< Work
  std::shared_ptr<Record> record; ///< Record and Wait; null in a wait for nothing
  std::shared_ptr<NcclTask> nccl;
  std::shared_ptr<GraphRun> graph;
  Clock host; ///< what the host knew to be done when it issued this
  bool hangs = false;
};

struct SoftStream {
  uint32_t number;
  int gpu;
  std::deque<Op> ops;
  Clock clock;
  uint64_t priority = 0;
  bool blocking = false;            ///< waits for the legacy stream, and the other way round
  std::shared_ptr<Capture> capture; ///< that it is in
  size_t lane = 0;                  ///< its number there
};

/// What a captured stream would have run. Launches make copies.
struct CapturedOp {
  size_t lane; ///< of the stream
  Op op;
  size_t record = 0; ///< of a Record or Wait: its number in the capture
};

/// Operations in the order in which they were issued: those of a lane follow each other, a wait
/// comes after its record, and that is all that orders them.
struct SoftGraph {
  int gpu = 0;
  std::vector<uint32_t> streams; ///< by lane: what it was captured from
  std::vector<CapturedOp> ops;
  size_t numRecords = 0;
};

/// Streams that are captured together.
struct Capture {
  CaptureMode mode = CaptureMode::Global;
  std::thread::id thread; ///< that began it
  SoftStream *origin = nullptr;
  bool invalidated = false;
  std::shared_ptr<SoftGraph> graph = std::make_shared<SoftGraph>();
  std::vector<SoftStream *> lanes;
  /// By lane and by record: how much of every lane comes before.
  std::vector<Clock> reached, recorded;
};

/// What can be launched. Its lanes are streams of the GPU that nobody else sees.
struct SoftGraphExec {
  std::shared_ptr<const SoftGraph> graph;
  std::vector<SoftStream *> lanes;
  std::shared_ptr<GraphRun> last; ///< launches of a graph run one after the other
};

/// One launch.
struct GraphRun {
  std::shared_ptr<SoftGraphExec> exec;
  std::vector<std::pair<SoftStream *, Op>> ops; ///< until it begins
  std::shared_ptr<GraphRun> before;
  bool started = false;
  bool done = false;
  Clock clock; ///< at its end
};

struct Allocation {
  uint64_t bytes;
  int gpu;
  bool freed = false;
  bool onHost = false;
};

/// A thread of the host, as the functions know it.
struct HostThread {
  int gpu = -1; ///< of its current context
  Clock clock;  ///< what it knows to be done
  /// Looks since something was issued, counted at the first stream that was looked at: one round
  /// over many streams is one look.
  uint32_t polls = 0;
  const void *anchor = nullptr;
  const void *awaited = nullptr; ///< what was not done at the last look
  uint32_t otherPolls = 0;
  uint64_t seenChanges = 0;
  bool hasUsedGpu = false;
  int groupDepth = 0;
  std::vector<std::pair<SoftComm *, Part>> group;
};

/// A group as the host issued it, to compare the orders of communicators.
struct IssuedTask {
  int gpu;
  size_t clique;
  /// Parts that have to meet: (clique, source or -1, destination or -1, number).
  std::vector<std::tuple<size_t, int, int, uint64_t>> meetings;
  std::shared_ptr<const std::string> name;
};

} // namespace dualpipe::test::softgpu

namespace dualpipe::test {

struct SoftGpu::State {
  explicit State(SoftGpuOptions options);
  ~State();

  // Threads, and whether anything may run.
  softgpu::HostThread &getThread();
  bool isQuiet() const;
  bool isEveryThreadHere() const;
  void pollOnce(softgpu::HostThread &thread, const void *subject);
  void goOn(softgpu::HostThread &thread, const void *subject);
  void runSome(bool quiet);

  // Streams.
  bool canRun(softgpu::SoftStream &stream);
  void runFront(softgpu::SoftStream &stream);
  void begin(softgpu::SoftStream &stream, const softgpu::Op &op);
  void issue(softgpu::HostThread &thread, softgpu::SoftStream &stream, softgpu::Op op);
  void reportStuck();
  std::string describeFront(const softgpu::SoftStream &stream) const;
  std::string nameStream(uint32_t number) const;
  softgpu::SoftStream &addStream(int gpu);

  // Captures and graphs.
  bool invalidateLegacy(int gpu);
  bool forbidUnsafeCall();
  void take(softgpu::SoftStream &stream, softgpu::Op op);
  void join(softgpu::SoftStream &stream, const std::shared_ptr<softgpu::Capture> &capture);
  void endCapture(softgpu::Capture &capture);
  bool isJoined(const softgpu::Capture &capture) const;
  std::shared_ptr<softgpu::GraphRun> launch(const std::shared_ptr<softgpu::SoftGraphExec> &exec,
                                            const softgpu::HostThread &thread);
  bool canRunGraph(const softgpu::GraphRun &run) const;
  bool runGraph(softgpu::SoftStream &stream, const softgpu::Op &op);
  bool isInGraph(const softgpu::SoftComm &comm) const;

  // Memory.
  void touch(const SoftUse &use, const softgpu::SoftStream &stream, const softgpu::Clock &clock,
             const std::shared_ptr<const std::string> &name);
  bool checkRange(const SoftUse &use, const std::string &name);

  // NCCL.
  std::shared_ptr<softgpu::NcclTask> findPartner(const softgpu::NcclTask &task,
                                                 const softgpu::Part &part, softgpu::Part *&other);
  bool canAdvance(softgpu::NcclTask &task, const softgpu::Part &part);
  void advance(softgpu::NcclTask &task, softgpu::Part &part);
  bool hasAllMembers(softgpu::NcclTask &task, const softgpu::Part &part);
  void runCollective(softgpu::NcclTask &task, softgpu::Part &part);
  bool closeGroup(softgpu::HostThread &thread);
  softgpu::Op enqueue(const std::shared_ptr<softgpu::NcclTask> &task);
  void writeCollective(softgpu::NcclTask &task, softgpu::Part &part,
                       const std::vector<const void *> &data);
  void cancel(softgpu::SoftComm &comm);
  void reportOrders();

  // NCCL between processes.
  void announceStart(softgpu::NcclTask &task);
  std::vector<unsigned char> readInput(const softgpu::NcclTask &task, const softgpu::Part &part);
  void finishCollective(softgpu::NcclTask &task, softgpu::Part &part);

  void report(std::string text);

  const SoftGpuOptions options;
  const uint64_t generation;
  mutable std::mutex mutex;
  softgpu::Dice dice;
  bool lazy;
  size_t picksPerDraw;
  std::map<std::string, uint32_t> calls;
  std::map<std::string, std::shared_ptr<const SoftKernel>> kernels;

  std::map<std::thread::id, std::unique_ptr<softgpu::HostThread>> threads;
  /// The first thread that called: it is taken to start the others, which begin with what it knows,
  /// and to join them.
  std::thread::id starter;
  uint64_t changes = 0;  ///< calls that were not polls
  uint32_t numEnded = 0; ///< threads that had used a GPU
  uint64_t numRun = 0;
  bool stuck = false;

  std::vector<std::unique_ptr<softgpu::SoftStream>> streams; ///< by number
  std::map<int, softgpu::SoftStream *> legacyStreams;        ///< by GPU
  std::map<uint32_t, uint32_t> lanes; ///< captured streams by lane of a graph
  std::set<std::shared_ptr<softgpu::Capture>> captures;
  std::map<const void *, std::shared_ptr<softgpu::SoftGraph>> graphs;
  std::map<const void *, std::shared_ptr<softgpu::SoftGraphExec>> executables;
  std::set<softgpu::SoftEvent *> events;
  std::set<softgpu::SoftComm *> comms;
  std::map<std::string, std::shared_ptr<softgpu::Clique>> cliques; ///< by unique id
  std::map<std::string, std::unique_ptr<std::string>> functionNames;
  std::map<uint64_t, softgpu::Allocation> allocations; ///< by begin
  std::vector<size_t> usedBytes;                       ///< by GPU
  softgpu::Shadow shadow;
  uint32_t numKernels = 0, numTransfers = 0;
  uint32_t numUniqueIds = 0;
  std::vector<softgpu::IssuedTask> issued;
  std::vector<std::string> reports;
  std::set<std::string> reported;
  std::unique_ptr<softgpu::Bridge> bridge; ///< null: communicators are of this process
};

} // namespace dualpipe::test

namespace dualpipe::test::softgpu {

/// The one that the functions of the tables work on; null between two.
SoftGpu::State *getCurrent();

/// One call of a function of a table: takes the lock, counts, and looks for a fault.
class Call {
public:
  enum Kind { Change, Poll };
  explicit Call(const char *name, Kind kind = Change);
  SoftGpu::State *operator->() { return &state; }
  SoftGpu::State &state;

private:
  std::unique_lock<std::mutex> lock;

public:
  HostThread &thread;
  /// The status to return instead; 0 where there is no fault.
  int fault = 0;
};

std::shared_ptr<const std::string> makeName(std::string text);
size_t getBytes(NcclType type);

/// The stream behind a handle, ready to take an operation; null is the legacy stream of the GPU.
DriverStatus findStream(Call &call, Stream handle, SoftStream *&stream);

/// The tables.
DriverApi makeDriver(int version);
NcclApi makeNccl(int version);
CublasApi makeCublas(int version);

} // namespace dualpipe::test::softgpu

#endif // DUALPIPE_TEST_SUPPORT_SOFTGPU_STATE_H
