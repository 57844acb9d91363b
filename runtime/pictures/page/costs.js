// What each command costs, as runtime/sim/CostTables.cpp lays it out. Times in ticks.

const [ACTIVATIONS, GRADIENTS] = [0, 1];

/** Of a cost that is common or differs by stage; undefined where neither is given. */
function findCost({common, stages}, stage) {
  return stages[stage] ?? common ?? undefined;
}

function getKey(fn, stage, component) {
  return `${fn},${stage},${component}`;
}

class CostTables {
  constructor(program, costs) {
    this.program = program;
    this.costs = costs;
    this.unit = program.ticksPerUnit;
    this.components = new Map(costs.components.map(([key, ticks]) => [getKey(...key), ticks]));
    this.pairs = new Map(costs.pairs.map(
        ([members, ticks]) => [members.map((key) => getKey(...key)).join(";"), ticks]));
    this.computes = FUNCTIONS.map(
        (_, fn) => Array.from(
            {length: program.components},
            (_, component) => Float64Array.from(
                {length: program.stages}, (_, stage) => this.getCompute(fn, stage, component))));
    this.links = program.channels.map(
        ([source, destination, kind]) => this.getLink(source, destination, kind));
  }

  getWhole(fn, stage) {
    const name = FUNCTIONS[fn];
    const given = findCost(this.costs[name], stage);
    if (given !== undefined) return given;
    if (fn < FWD) return 0;
    return fn === BWD ? this.getWhole(BWD_INPUT, stage) + this.getWhole(BWD_WEIGHT, stage) :
                        this.unit;
  }

  /** Components take equal parts, the first what is left over. */
  getCompute(fn, stage, component) {
    const whole = this.getWhole(fn, stage);
    const part = Math.floor(whole / this.program.components);
    const own = component === 0 ? whole - part * (this.program.components - 1) : part;
    return this.components.get(getKey(fn, stage, component)) ?? own;
  }

  getLaunch(commands, at) {
    return this.computes[commands.fn[at]][commands.component[at]][commands.stage[at]];
  }

  /** A pair as a whole; its launches are `number` commands from `first` on. */
  getPair(commands, first, number) {
    const members = this.pairs.size ? this.getMembers(commands, first, number) : "";
    const given = this.pairs.has(members) ? this.pairs.get(members) : this.costs.fused;
    if (given !== null) return given;
    let sum = 0;
    for (let i = first; i < first + number; ++i) sum += this.getLaunch(commands, i);
    return sum;
  }

  /** Of a pair, in the order in which costs name them. */
  getMembers({fn, stage, component}, first, number) {
    const keys = Array.from({length: number}, (_, i) => first + i)
                     .map((i) => [fn[i], stage[i], component[i]]);
    keys.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
    return keys.map((key) => getKey(...key)).join(";");
  }

  getNode(rank) {
    return this.costs.ranksPerNode === 0 ? 0 : Math.floor(rank / this.costs.ranksPerNode);
  }

  /** Bytes over bandwidth, in ticks. */
  getTicks(bytes, bandwidth) {
    return bytes === 0 || bandwidth === 0 ? 0 : Math.round((bytes / bandwidth) * this.unit);
  }

  /** The way between two ranks, of one node or of two. */
  getWay(isFar) {
    const {transfer, occupancy, bandwidth, farTransfer, farOccupancy, farBandwidth} = this.costs;
    if (!isFar) return {latency: transfer, occupancy, bandwidth};
    return {
      latency: farTransfer ?? transfer,
      occupancy: farOccupancy ?? occupancy,
      bandwidth: farBandwidth ?? bandwidth
    };
  }

  /** A channel's latency, and its occupancy by stage. */
  getLink(source, destination, kind) {
    const {latency, occupancy, bandwidth} =
        this.getWay(this.getNode(source) !== this.getNode(destination));
    const sizes = kind === ACTIVATIONS ? this.costs.activationSizes : this.costs.gradientSizes;
    const isKnown = sizes.length === this.program.stages;
    const occupancies = Float64Array.from(
        {length: this.program.stages},
        (_, stage) =>
            occupancy + this.getTicks(isKnown ? sizes[stage] : this.costs.bytes, bandwidth));
    return {latency, occupancies};
  }

  /**
   * With the time of a ring where bytes and bandwidth are known; its source is at getRing in C++.
   */
  getReduction(group, stage) {
    const {reduce, parameterSizes, reduceBytes} = this.costs;
    const fixed = findCost(reduce, stage) ?? 0;
    if (reduce.stages[stage] !== undefined) return fixed;
    const bytes =
        parameterSizes.length === this.program.stages ? parameterSizes[stage] : reduceBytes;
    const ranks = this.program.groups[group];
    const {latency, bandwidth} =
        this.getWay(this.getNode(ranks[0]) !== this.getNode(ranks[ranks.length - 1]));
    if (ranks.length < 2 || bytes === 0 || bandwidth === 0) return fixed;
    const sent = ((2 * (ranks.length - 1)) / ranks.length) * bytes;
    return fixed + this.getTicks(sent, bandwidth) + 2 * (ranks.length - 1) * latency;
  }

  getStep(stage) {
    return findCost(this.costs.step, stage) ?? 0;
  }
}
