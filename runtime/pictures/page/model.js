// The program in virtual time. The rules are those of runtime/sim/Simulation.cpp: streams run in
// order, events order them, a transfer starts when both of its ends have come, a reduction when
// all of its ranks have. Times are whole ticks, so results are exact.

/** A time, and the command whose end it is. */
class Clock {
  constructor() {
    this.set(0, NONE, NONE);
  }
  set(time, rank, command) {
    this.time = time;
    this.rank = rank;
    this.command = command;
  }
  copy(other) {
    this.set(other.time, other.rank, other.command);
  }
  raise(other) {
    if (other.time > this.time) this.copy(other);
  }
}

/** How far a stream has come. */
class StreamState {
  constructor() {
    this.next = new Clock();                  // the next transfer may start
    this.done = new Clock();                  // all that was begun is complete
    this.waits = [new Clock(), new Clock()];  // by direction, where pairs start separately
    this.results = [new Clock(), new Clock()];
  }
  finish(clock) {
    this.next.copy(clock);
    this.done.copy(clock);
    for (const result of this.results) result.copy(clock);
  }
}

class RankState {
  constructor(rank, separate) {
    this.at = 0;
    this.streams = rank.streams.map(() => new StreamState());
    this.events = new Float64Array(rank.numEvents);
    this.eventBy = new Int32Array(rank.numEvents).fill(NONE);
    this.eventResults =
        separate ? Array.from({length: rank.numEvents}, () => [new Clock(), new Clock()]) : [];
    this.activations = 0;
    this.pending = 0;
    const count = rank.commands.count;
    this.start = new Float64Array(count);
    this.end = new Float64Array(count);
    this.afterRank = new Int32Array(count).fill(NONE);
    this.afterCommand = new Int32Array(count).fill(NONE);
    this.busy = 0;
    this.firstStart = 0;
    this.lastEnd = 0;
    this.sends = 0;
    this.peakActivations = 0;
    this.deepestWeightQueue = 0;
  }
}

class Simulator {
  constructor(program, costs) {
    this.program = program;
    this.costs = costs;
    this.tables = new CostTables(program, costs);
    this.separate = costs.separate;
    // Whether results of a pair are there at different times.
    this.byDirection = costs.separate || costs.forwardDone !== null || costs.backwardDone !== null;
    this.states = program.rankPrograms.map((rank) => new RankState(rank, this.byDirection));
    this.channels =
        program.channels.map(() => ({free: new Clock(), standing: NONE, atSend: false}));
    this.groups = program.groups.map(() => ({standing: [], last: new Clock()}));
    this.ready = [];
    this.makespan = 0;
    this.scratch = new Clock();
  }

  run() {
    for (let rank = 0; rank < this.states.length; ++rank) {
      this.walk(rank);
      while (this.ready.length) this.walk(this.ready.pop());
    }
    return {makespan: this.makespan, ranks: this.states};
  }

  /** Walks a rank's list until it ends or the rank has to stand somewhere. */
  walk(rank) {
    const state = this.states[rank];
    const commands = this.program.rankPrograms[rank].commands;
    while (state.at < commands.count && this.runCommand(rank, state, commands)) ++state.at;
  }

  /** Runs the command that a rank has come to; false where it stands there. */
  runCommand(rank, state, commands) {
    const at = state.at;
    const stream = state.streams[commands.stream[at]];
    switch (commands.op[at]) {
      case LAUNCH:
        this.runLaunch(rank, state, stream, commands);
        return true;
      case PAIR:
        this.runPair(rank, state, stream, commands);
        return true;
      case SEND:
      case RECV:
        return this.runTransfer(rank, commands, at);
      case RECORD:
        this.record(rank, state, stream, commands.arg[at]);
        return true;
      case WAIT:
        this.wait(rank, state, stream, commands.arg[at]);
        return true;
      case REDUCE:
        return this.runReduction(rank, stream, commands.arg[at], commands.stage[at]);
      case STEP:
        this.runStep(rank, state, stream, commands.stage[at]);
        return true;
      default:  // a group: its transfers run one after the other
        return true;
    }
  }

  keep(rank, command, start, end, after) {
    const state = this.states[rank];
    if (end > this.makespan) this.makespan = end;
    state.start[command] = start;
    state.end[command] = end;
    state.afterRank[command] = after.rank;
    state.afterCommand[command] = after.command;
  }

  // Computes

  /** All that a compute has to wait for, of any direction. */
  takeWaits(stream) {
    const all = new Clock();
    all.copy(stream.done);
    for (const wait of stream.waits) {
      all.raise(wait);
      wait.set(0, NONE, NONE);
    }
    return all;
  }

  finishAt(stream, time, rank, command) {
    this.scratch.set(time, rank, command);
    stream.finish(this.scratch);
  }

  addCompute(state, start, end, busy) {
    if (state.busy === 0) state.firstStart = start;
    if (end > state.lastEnd) state.lastEnd = end;
    state.busy += busy;
  }

  /**
   * Forwards of a pair take their memory before its backwards give any back. Further components of
   * a stage belong to the op of the first.
   */
  count(state, commands, first, number) {
    for (let i = first; i < first + number; ++i) {
      if (commands.component[i] !== 0) continue;
      if (commands.fn[i] === FWD) ++state.activations;
      if (commands.fn[i] === BWD_INPUT) ++state.pending;
    }
    state.peakActivations = Math.max(state.peakActivations, state.activations);
    state.deepestWeightQueue = Math.max(state.deepestWeightQueue, state.pending);
    for (let i = first; i < first + number; ++i) {
      if (commands.component[i] !== 0) continue;
      const fn = commands.fn[i];
      const isLast = fn === BWD || fn === BWD_WEIGHT || (fn === FWD && !this.program.training);
      if (isLast && state.activations) --state.activations;
      if (fn === BWD_WEIGHT && state.pending) --state.pending;
    }
  }

  runLaunch(rank, state, stream, commands) {
    const at = state.at;
    const time = this.tables.getLaunch(commands, at);
    if (commands.fn[at] < FWD && time === 0) {
      this.keep(rank, at, stream.done.time, stream.done.time, stream.done);
      return;
    }
    const start = this.takeWaits(stream);
    this.finishAt(stream, start.time + time, rank, at);
    this.addCompute(state, start.time, start.time + time, time);
    this.count(state, commands, at, 1);
    this.keep(rank, at, start.time, start.time + time, start);
  }

  /** The launches of a pair stand behind it. */
  runPair(rank, state, stream, commands) {
    const first = state.at + 1;
    const number = commands.arg[state.at];
    const time = this.tables.getPair(commands, first, number);
    if (this.separate)
      this.runSeparately(rank, state, stream, commands, number, time);
    else
      this.runJointly(rank, state, stream, number, time);
    this.count(state, commands, first, number);
    state.at += number;
  }

  runJointly(rank, state, stream, number, time) {
    const at = state.at;
    const start = this.takeWaits(stream);
    this.finishAt(stream, start.time + time, rank, at);
    stream.results[ACTIVATIONS].time = start.time + Math.min(time, this.costs.forwardDone ?? time);
    stream.results[GRADIENTS].time = start.time + Math.min(time, this.costs.backwardDone ?? time);
    this.addCompute(state, start.time, start.time + time, time);
    for (let i = at; i <= at + number; ++i)
      this.keep(rank, i, start.time, start.time + time, start);
  }

  /** Each member when its own inputs are there. */
  runSeparately(rank, state, stream, commands, number, time) {
    const at = state.at;
    const ends = [new Clock(), new Clock()];
    const first = new Clock();
    const own = new Clock();
    let end = 0;
    for (let i = at + 1; i <= at + number; ++i) {
      const direction = commands.fn[i] === FWD ? ACTIVATIONS : GRADIENTS;
      const start = new Clock();
      start.copy(stream.done);
      start.raise(stream.waits[direction]);
      const ownEnd = start.time + this.tables.getLaunch(commands, i);
      this.keep(rank, i, start.time, ownEnd, start);
      own.set(ownEnd, rank, i);
      ends[direction].raise(own);
      end = Math.max(end, ownEnd);
      if (i === at + 1 || start.time < first.time) first.copy(start);
    }
    end = Math.max(end, first.time + time);
    this.takeWaits(stream);
    this.finishAt(stream, end, rank, at);
    for (const direction of [ACTIVATIONS, GRADIENTS])
      stream.results[direction].copy(ends[direction]);
    this.addCompute(state, first.time, end, time);
    this.keep(rank, at, first.time, end, first);
  }

  runStep(rank, state, stream, stage) {
    const at = state.at;
    const start = this.takeWaits(stream);
    const time = this.tables.getStep(stage);
    const end = start.time + time;
    this.finishAt(stream, end, rank, at);
    if (time !== 0) this.addCompute(state, start.time, end, time);
    this.keep(rank, at, start.time, end, start);
  }

  // Events

  /** The direction of the channel that a command's stream serves, or NONE. */
  getDirection(rank, command) {
    const own = this.program.rankPrograms[rank];
    const stream = own.streams[own.commands.stream[command]];
    return stream.kind === 1 || stream.kind === 2 ? this.program.channels[stream.target][2] : NONE;
  }

  record(rank, state, stream, event) {
    const at = state.at;
    this.keep(rank, at, stream.done.time, stream.done.time, stream.done);
    state.events[event] = stream.done.time;
    state.eventBy[event] = stream.done.command;
    if (!this.byDirection) return;
    const results = state.eventResults[event];
    const direction = this.getDirection(rank, at);
    if (direction !== NONE)
      results[direction].copy(stream.done);
    else
      for (const each of [ACTIVATIONS, GRADIENTS]) results[each].copy(stream.results[each]);
  }

  wait(rank, state, stream, event) {
    if (this.byDirection) {
      this.waitByDirection(rank, state, stream, event);
    } else {
      this.scratch.set(state.events[event], rank, state.eventBy[event]);
      stream.next.raise(this.scratch);
      stream.done.raise(this.scratch);
    }
    this.keep(rank, state.at, stream.done.time, stream.done.time, stream.done);
  }

  waitByDirection(rank, state, stream, event) {
    const own = this.program.rankPrograms[rank];
    const kind = own.streams[own.commands.stream[state.at]].kind;
    const direction = this.getDirection(rank, state.at);
    for (const each of [ACTIVATIONS, GRADIENTS]) {
      const result = state.eventResults[event][each];
      if (kind === STREAM_COMPUTE) {
        stream.waits[each].raise(result);
        continue;
      }
      // A slot of an activation may be read by the backward too.
      const reads = kind === 2 && this.program.backwardReadsActivations;
      if (direction !== NONE && direction !== each && !reads) continue;
      stream.next.raise(result);
      stream.done.raise(result);
    }
  }

  // Transfers and reductions

  /** The first end stands, the second completes the transfer for both. */
  runTransfer(rank, commands, at) {
    const isSend = commands.op[at] === SEND;
    const channel = this.channels[commands.arg[at]];
    if (channel.standing === NONE || channel.atSend === isSend) {
      channel.standing = rank;
      channel.atSend = isSend;
      return false;
    }
    const other = channel.standing;
    channel.standing = NONE;
    const link = this.tables.links[commands.arg[at]];
    this.completeTransfer(
        isSend ? rank : other, isSend ? other : rank, channel, link,
        link.occupancies[commands.stage[at]]);
    ++this.states[other].at;
    this.ready.push(other);
    return true;
  }

  getStream(rank) {
    const state = this.states[rank];
    return state.streams[this.program.rankPrograms[rank].commands.stream[state.at]];
  }

  completeTransfer(sender, receiver, channel, link, occupancy) {
    const start = new Clock();
    start.copy(this.getStream(sender).next);
    start.raise(this.getStream(receiver).next);
    start.raise(channel.free);
    const free = start.time + occupancy;
    const end = free + link.latency;
    channel.free.set(free, sender, this.states[sender].at);
    for (const rank of [sender, receiver]) {
      const stream = this.getStream(rank);
      const at = this.states[rank].at;
      stream.next.set(free, rank, at);
      if (end >= stream.done.time) stream.done.set(end, rank, at);
      this.keep(rank, at, start.time, end, start);
    }
    ++this.states[sender].sends;
  }

  runReduction(rank, stream, number, stage) {
    const group = this.groups[number];
    group.standing.push(rank);
    group.last.raise(stream.done);
    if (group.standing.length !== this.program.groups[number].length) return false;
    const end = group.last.time + this.tables.getReduction(number, stage);
    for (const member of group.standing) {
      const at = this.states[member].at;
      this.finishAt(this.getStream(member), end, member, at);
      this.keep(member, at, group.last.time, end, group.last);
    }
    group.standing.pop();  // the last to come goes on by itself
    for (const member of group.standing) {
      ++this.states[member].at;
      this.ready.push(member);
    }
    group.standing = [];
    group.last = new Clock();
    return true;
  }
}

/** The report's numbers (docs/reports.md), in ticks. */
function summarize(run) {
  const most = (list) => list.reduce((a, b) => Math.max(a, b), 0);
  const busy = run.ranks.map((rank) => rank.busy);
  const bubbles = busy.map((time) => run.makespan - time);
  const ideal = most(busy);
  const span = most(run.ranks.map((rank) => rank.lastEnd - rank.firstStart));
  return {
    makespan: run.makespan,
    ideal,
    busy,
    bubbles,
    worst: most(bubbles),
    rate: span === 0 ? 0 : (span - ideal) / span,
    peakActivations: run.ranks.map((rank) => rank.peakActivations),
    weightQueue: run.ranks.map((rank) => rank.deepestWeightQueue),
    sends: run.ranks.map((rank) => rank.sends),
  };
}

/** One chain of commands from the end to the beginning, each ending as the one after it starts. */
function findCriticalPath(program, run) {
  const path = [];
  for (let rank = 0; rank < run.ranks.length && !path.length; ++rank) {
    const {op, count} = program.rankPrograms[rank].commands;
    for (let i = 0; i < count && !path.length; ++i) {
      const takesTime = op[i] === LAUNCH || op[i] === PAIR || op[i] === STEP || op[i] === REDUCE;
      if (takesTime && run.ranks[rank].end[i] === run.makespan) path.push([rank, i]);
    }
  }
  while (path.length) {
    const [rank, command] = path[path.length - 1];
    const state = run.ranks[rank];
    if (state.afterCommand[command] === NONE) break;
    path.push([state.afterRank[command], state.afterCommand[command]]);
  }
  return path.reverse();
}

/** From the first start to the last end of a command, or of the members of a pair or a group. */
function getUnitTime(commands, times, at) {
  const isBracket = commands.op[at] === PAIR || commands.op[at] === GROUP;
  if (!isBracket || commands.arg[at] === 0) return [times.start[at], times.end[at]];
  let [start, end] = [times.start[at + 1], times.end[at + 1]];
  for (let i = at + 2; i <= at + commands.arg[at]; ++i) {
    start = Math.min(start, times.start[i]);
    end = Math.max(end, times.end[i]);
  }
  return [start, end];
}
