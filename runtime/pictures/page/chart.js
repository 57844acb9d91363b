// The chart: rows of bars, and what is drawn over them.

const [BAR_FWD, BAR_BWD, BAR_INPUT, BAR_WEIGHT, BAR_STEP, BAR_REDUCE] = [0, 1, 2, 3, 4, 5];
const BAR_OF_FUNCTION = [NONE, NONE, BAR_FWD, BAR_BWD, BAR_INPUT, BAR_WEIGHT];
const GUTTER = 62;
const AXIS = 24;
const MOST_PITCH = 46;

/** The bars of a rank in issue order; their times are those of a run. */
function makeRow(program, rank, pipelineOf) {
  const {commands} = program.rankPrograms[rank];
  const row =
      {command: [], kind: [], variant: [], part: [], parts: [], frames: [], order: [], longest: 0};
  let pairFirst = NONE;
  let pairSize = 0;
  for (let i = 0; i < commands.count; ++i) {
    const op = commands.op[i];
    if (op === PAIR) {
      pairFirst = i + 1;
      pairSize = commands.arg[i];
      row.frames.push(i);
    }
    const kind = op === LAUNCH ? BAR_OF_FUNCTION[commands.fn[i]] :
        op === STEP            ? BAR_STEP :
        op === REDUCE          ? BAR_REDUCE :
                                 NONE;
    if (kind === NONE) continue;
    const isMember = pairFirst !== NONE && i < pairFirst + pairSize;
    row.command.push(i);
    row.kind.push(kind);
    row.variant.push(
        op === LAUNCH ? getVariant(program, pipelineOf, commands.stage[i], commands.microbatch[i]) :
                        0);
    row.part.push(isMember ? i - pairFirst : 0);
    row.parts.push(isMember ? pairSize : 1);
  }
  return row;
}

function getVariant(program, pipelineOf, stage, microbatch) {
  const pipeline = program.pipelines[pipelineOf[microbatch]];
  return pipeline.firstVariant + pipeline.chunks[stage - pipeline.firstStage];
}

/** Bars by start, so that those of a span of time can be looked up. */
function orderRow(row, times) {
  row.order =
      Uint32Array.from(row.command.keys())
          .sort((a, b) => times.start[row.command[a]] - times.start[row.command[b]] || a - b);
  row.longest = row.command.reduce((most, i) => Math.max(most, times.end[i] - times.start[i]), 0);
}

/** The first entry of `order` that can reach into what comes after `time`. */
function findFirst(row, times, time) {
  let [low, high] = [0, row.order.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times.start[row.command[row.order[middle]]] < time - row.longest)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/** Where an op's inputs come from: the ops that make them, by what they are. */
class OpIndex {
  constructor(program) {
    this.program = program;
    this.places = new Map();
    program.rankPrograms.forEach(({commands}, rank) => {
      for (let i = 0; i < commands.count; ++i)
        if (commands.fn[i] >= FWD)
          this.places.set(
              this.key(commands.fn[i], commands.stage[i], commands.microbatch[i]), [rank, i]);
    });
    this.pipelineOf = [];
    program.pipelines.forEach((pipeline, index) => {
      for (let i = 0; i < pipeline.microbatches; ++i)
        this.pipelineOf[pipeline.firstMicrobatch + i] = index;
    });
  }
  key(fn, stage, microbatch) {
    return (fn * this.program.stages + stage) * this.program.microbatches + microbatch;
  }
  find(stage, microbatch, ...functions) {
    for (const fn of functions) {
      const place = this.places.get(this.key(fn, stage, microbatch));
      if (place) return place;
    }
    return null;
  }
  /** [rank, command] of each op that a launch reads from. */
  getProducers(rank, command) {
    const {fn, stage, microbatch} = this.program.rankPrograms[rank].commands;
    if (fn[command] < FWD) return [];
    const [s, m] = [stage[command], microbatch[command]];
    const pipeline = this.program.pipelines[this.pipelineOf[m]];
    const isFirst = s === pipeline.firstStage;
    const isLast = s === pipeline.firstStage + pipeline.placement.length - 1;
    const found = [];
    if (fn[command] === FWD)
      found.push(isFirst ? null : this.find(s - 1, m, FWD));
    else if (fn[command] === BWD_WEIGHT)
      found.push(this.find(s, m, BWD_INPUT));
    else
      found.push(isLast ? null : this.find(s + 1, m, BWD, BWD_INPUT), this.find(s, m, FWD));
    return found.filter(Boolean);
  }
}

/** The part of time and of the ranks that is seen, and where it is on the canvas. */
class View {
  constructor(numRanks, hasPhases) {
    this.numRanks = numRanks;
    this.hasPhases = hasPhases;
    this.width = 800;
    this.height = 400;
    this.begin = 0;
    this.length = 1;  // ticks that the width shows
    this.makespan = 1;
    this.pitch = 24;
    this.scroll = 0;
  }
  resize(width, height) {
    this.width = Math.max(100, width - GUTTER - 10);
    this.height = height;
    if (this.isFitted)
      this.fit(this.makespan);
    else
      this.pan(0, 0);
  }
  fit(makespan) {
    this.makespan = Math.max(1, makespan);
    this.begin = 0;
    this.length = this.makespan;
    this.setPitch(Math.min(MOST_PITCH, Math.max(3, (this.height - AXIS - 6) / this.numRanks)));
    this.scroll = 0;
    this.isFitted = true;
  }
  /** Another run: what was seen stays, as a part of the whole. */
  rescale(makespan) {
    const factor = Math.max(1, makespan) / this.makespan;
    this.begin *= factor;
    this.length *= factor;
    this.makespan = Math.max(1, makespan);
  }
  setPitch(pitch) {
    this.isFitted = false;
    this.pitch = Math.min(60, Math.max(2, pitch));
    this.pan(0, 0);
  }
  /** Above each row, for the names of its phases. */
  get phaseHeight() {
    return this.hasPhases && this.pitch >= 30 ? 11 : 0;
  }
  get barHeight() {
    return this.pitch - this.phaseHeight - (this.pitch > 12 ? 4 : this.pitch > 4 ? 1 : 0);
  }
  x(time) {
    return GUTTER + ((time - this.begin) / this.length) * this.width;
  }
  /** Of the top of the bars. */
  y(rank) {
    return AXIS + rank * this.pitch + this.phaseHeight - this.scroll;
  }
  timeAt(x) {
    return this.begin + ((x - GUTTER) / this.width) * this.length;
  }
  rankAt(y) {
    const rank = Math.floor((y - AXIS + this.scroll) / this.pitch);
    return y >= AXIS && rank >= 0 && rank < this.numRanks ? rank : NONE;
  }
  zoom(factor, x) {
    this.isFitted = false;
    const fixed = this.timeAt(x);
    const length = Math.min(this.makespan, Math.max(this.makespan / 1e5, this.length * factor));
    this.begin = fixed - ((fixed - this.begin) * length) / this.length;
    this.length = length;
    this.pan(0, 0);
  }
  /** By pixels. */
  pan(dx, dy) {
    const begin = this.begin + (dx / this.width) * this.length;
    this.begin = Math.min(Math.max(0, begin), Math.max(0, this.makespan - this.length));
    const most = Math.max(0, this.numRanks * this.pitch + AXIS - this.height);
    this.scroll = Math.min(Math.max(0, this.scroll + dy), most);
  }
}

/** 1, 2 or 5 times a power of ten ticks, so that labels keep a distance. */
function getTickDistance(ticksPerPixel) {
  for (let power = 1;; power *= 10)
    for (const factor of [1, 2, 5])
      if (power * factor >= 60 * ticksPerPixel) return power * factor;
}

/** Rectangles, filled colour by colour. */
class Layers {
  constructor() {
    this.byColour = new Map();
  }
  add(colour, x, y, width, height) {
    if (!this.byColour.has(colour)) this.byColour.set(colour, []);
    this.byColour.get(colour).push(x, y, width, height);
  }
  fill(context) {
    for (const [colour, boxes] of this.byColour) {
      context.fillStyle = colour;
      context.beginPath();
      for (let i = 0; i < boxes.length; i += 4)
        context.rect(boxes[i], boxes[i + 1], boxes[i + 2], boxes[i + 3]);
      context.fill();
    }
  }
}

/** Draws the chart of a run. `colours` are those of the page's theme. */
class ChartPainter {
  constructor(program, rows) {
    this.program = program;
    this.rows = rows;
  }
  getMark(variant) {
    return this.program.variants.length < 2 ? 0 : variant / (this.program.variants.length - 1);
  }

  paint(context, view, run, colours) {
    this.view = view;
    this.run = run;
    this.colours = colours;
    context.clearRect(0, 0, view.width + GUTTER + 10, view.height);
    this.paintAxis(context);
    context.save();
    context.beginPath();
    context.rect(GUTTER, AXIS, view.width, view.height - AXIS);
    context.clip();
    const first = Math.max(0, Math.floor(view.scroll / view.pitch));
    const last =
        Math.min(view.numRanks, Math.ceil((view.scroll + view.height - AXIS) / view.pitch));
    context.fillStyle = colours.row;
    for (let rank = first; rank < last; ++rank)
      context.fillRect(
          view.x(0), view.y(rank), (view.makespan / view.length) * view.width, view.barHeight);
    const [bars, marks] = [new Layers(), new Layers()];
    const numbers = [];
    for (let rank = first; rank < last; ++rank) this.layOutRow(rank, bars, marks, numbers);
    bars.fill(context);
    marks.fill(context);
    this.paintNumbers(context, numbers);
    for (let rank = first; rank < last; ++rank) this.paintFrames(context, rank);
    for (let rank = first; rank < last; ++rank) this.paintPhases(context, rank);
    context.restore();
    this.paintLabels(context, first, last);
  }

  paintAxis(context) {
    const {view, colours} = this;
    const distance = getTickDistance(view.length / view.width);
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillStyle = colours.faint;
    context.strokeStyle = colours.line;
    context.beginPath();
    for (let time = Math.ceil(view.begin / distance) * distance; time <= view.begin + view.length;
         time += distance) {
      const x = Math.round(view.x(time)) + 0.5;
      context.moveTo(x, AXIS - 5);
      context.lineTo(x, view.height);
      context.fillText(printTicks(time, this.program.ticksPerUnit), x, 13);
    }
    context.stroke();
  }

  paintLabels(context, first, last) {
    const {view, colours} = this;
    context.clearRect(0, AXIS, GUTTER - 1, view.height - AXIS);
    context.textAlign = "right";
    context.font = "11px system-ui, sans-serif";
    const every = Math.ceil(13 / view.pitch);
    for (let rank = first; rank < last; ++rank) {
      if (rank % every) continue;
      context.fillStyle = rank === colours.selected ? colours.accent : colours.text;
      context.fillText(
          `rank ${rank}`, GUTTER - 8, view.y(rank) + Math.min(view.barHeight, 40) / 2 + 4);
    }
  }

  /**
   * Bars in pixels. What is narrower than a pixel is sampled: one of those that share it is drawn.
   */
  layOutRow(rank, bars, marks, numbers) {
    const {view, program} = this;
    const row = this.rows[rank];
    const times = this.run.ranks[rank];
    const commands = program.rankPrograms[rank].commands;
    const until = view.begin + view.length;
    const reached = new Map();  // by place in the row
    for (let i = findFirst(row, times, view.begin); i < row.order.length; ++i) {
      const bar = row.order[i];
      const at = row.command[bar];
      if (times.start[at] > until) break;
      if (times.end[at] === times.start[at] || times.end[at] < view.begin) continue;
      const kind = row.kind[bar];
      const part = kind === BAR_REDUCE ? -1 : row.part[bar];
      const left = Math.max(view.x(times.start[at]), GUTTER - 2, reached.get(part) ?? 0);
      const right = Math.min(view.x(times.end[at]), GUTTER + view.width + 2);
      const isNarrow = view.x(times.end[at]) - view.x(times.start[at]) < 2;
      if (isNarrow && Math.floor(right) <= Math.floor(left)) continue;
      reached.set(part, isNarrow ? Math.floor(right) : right);
      const gap = right - left > 4 ? 1 : 0;
      const height = kind === BAR_REDUCE ? 3 : view.barHeight / row.parts[bar];
      const top = kind === BAR_REDUCE ? view.y(rank) + view.barHeight - 1 :
                                        view.y(rank) + height * row.part[bar];
      const end = isNarrow ? Math.floor(right) : right;
      const begin = isNarrow ? Math.floor(left) : left;
      bars.add(
          program.kinds[kind].colours[row.variant[bar]], begin, top,
          Math.max(0.5, end - begin - gap), height);
      const mark = kind <= BAR_WEIGHT ? this.getMark(row.variant[bar]) : 0;
      if (mark > 0 && right - left > 6 && height >= 6)
        marks.add("rgba(20,24,28,.75)", begin, top + height - 2, (end - begin - gap) * mark, 2);
      if (kind <= BAR_WEIGHT && height >= 10)
        numbers.push([
          commands.microbatch[at], (begin + end - gap) / 2, top + height / 2, right - left - 2,
          program.kinds[kind].dark, height
        ]);
    }
  }

  paintNumbers(context, numbers) {
    context.textAlign = "center";
    for (const [number, x, y, width, dark, height] of numbers) {
      const most = height < 13 ? 9 : 11;
      const size = Math.min(most, Math.floor(width / (String(number).length * 0.6)));
      if (size < 8) continue;
      context.font = `${size}px system-ui, sans-serif`;
      context.fillStyle = dark ? "#fff" : "#16181b";
      context.fillText(number, x, y + size * 0.36);
    }
  }

  /** Fused pairs. */
  paintFrames(context, rank) {
    const {view} = this;
    const commands = this.program.rankPrograms[rank].commands;
    if (view.barHeight < 8) return;
    context.strokeStyle = this.colours.frame;
    context.lineWidth = 1.25;
    context.beginPath();
    for (const pair of this.rows[rank].frames) {
      const [start, end] = getUnitTime(commands, this.run.ranks[rank], pair);
      const [left, right] = [view.x(start), view.x(end)];
      if (right < GUTTER || left > GUTTER + view.width || right - left < 5) continue;
      context.rect(left + 0.5, view.y(rank), right - left - 2, view.barHeight);
    }
    context.stroke();
    context.lineWidth = 1;
  }

  /** A tick where a phase begins, and its name where there is room. */
  paintPhases(context, rank) {
    const {view} = this;
    const {phases, commands} = this.program.rankPrograms[rank];
    if (view.pitch < 14) return;
    context.strokeStyle = context.fillStyle = this.colours.faint;
    context.font = "italic 10px system-ui, sans-serif";
    context.textAlign = "left";
    const starts = phases.map(({command, name}) => [this.findStart(rank, commands, command), name]);
    context.beginPath();
    starts.forEach(([x, name], i) => {
      context.moveTo(Math.round(x) + 0.5, view.y(rank) - Math.max(3, view.phaseHeight - 1));
      context.lineTo(Math.round(x) + 0.5, view.y(rank));
      const room = (starts[i + 1]?.[0] ?? view.x(view.makespan)) - x - 6;
      const text = this.program.phases[name];
      if (view.phaseHeight && context.measureText(text).width <= room)
        context.fillText(text, x + 3, view.y(rank) - 3);
    });
    context.stroke();
  }

  /** Where the first compute from a command on starts, in pixels. */
  findStart(rank, commands, from) {
    for (let at = from; at < commands.count; ++at)
      if (commands.op[at] === PAIR || commands.fn[at] >= FWD || commands.op[at] === STEP)
        return this.view.x(this.run.ranks[rank].start[at]);
    return this.view.x(this.view.makespan);
  }

  /** Boxes around commands, and lines where the chain goes from one rank to another. */
  paintPath(context, path) {
    const {view} = this;
    context.save();
    context.beginPath();
    context.rect(GUTTER, AXIS, view.width, view.height - AXIS);
    context.clip();
    context.strokeStyle = this.colours.path;
    context.lineWidth = view.pitch > 8 ? 2.5 : 1.5;
    context.beginPath();
    let last = null;
    for (const [rank, command] of path) {
      const {op} = this.program.rankPrograms[rank].commands;
      const times = this.run.ranks[rank];
      if (op[command] === SEND || op[command] === RECV) continue;
      const [left, right] = [view.x(times.start[command]), view.x(times.end[command])];
      const middle = view.y(rank) + view.barHeight / 2;
      if (last && last.rank !== rank) {
        context.moveTo(last.x, last.y);
        context.lineTo(left, middle);
      }
      if (right > GUTTER - 5 && left < GUTTER + view.width + 5)
        context.rect(
            left + 0.5, view.y(rank) + 0.5, Math.max(1, right - left - 2), view.barHeight - 1);
      last = {rank, x: right, y: middle};
    }
    context.stroke();
    context.restore();
  }

  /** A box around one op. */
  paintHovered(context, rank, command, part, parts) {
    const {view} = this;
    const times = this.run.ranks[rank];
    const height = view.barHeight / parts;
    const left = Math.max(view.x(times.start[command]), GUTTER);
    context.strokeStyle = this.colours.accent;
    context.lineWidth = 2.5;
    context.strokeRect(
        left, view.y(rank) + part * height, view.x(times.end[command]) - left - 1, height);
    context.lineWidth = 1;
  }

  /** An arrow from the end of one op to the start of another. */
  paintArrow(context, from, to, isCause) {
    const {view} = this;
    const x1 = view.x(this.run.ranks[from[0]].end[from[1]]);
    const x2 = view.x(this.run.ranks[to[0]].start[to[1]]);
    const y1 = view.y(from[0]) + view.barHeight / 2;
    const y2 = view.y(to[0]) + view.barHeight / 2;
    context.strokeStyle = context.fillStyle = isCause ? this.colours.path : this.colours.accent;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x1, y1);
    const bend = Math.max(12, Math.abs(x2 - x1) / 2);
    context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2 - 4, y2);
    context.stroke();
    context.beginPath();
    context.moveTo(x2 + 1, y2);
    context.lineTo(x2 - 7, y2 - 4);
    context.lineTo(x2 - 7, y2 + 4);
    context.fill();
    context.lineWidth = 1;
  }
}
