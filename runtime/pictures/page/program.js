// The program: what PageProgram.cpp wrote, as columns of numbers.

const OPS = ["launch", "pair", "send", "recv", "group", "record", "wait", "reduce", "step"];
const [LAUNCH, PAIR, SEND, RECV, GROUP, RECORD, WAIT, REDUCE, STEP] = OPS.keys();
const FUNCTIONS = ["load_input", "load_labels", "fwd", "bwd", "bwd_input", "bwd_weight"];
const [LOAD_INPUT, LOAD_LABELS, FWD, BWD, BWD_INPUT, BWD_WEIGHT] = FUNCTIONS.keys();
const STREAM_COMPUTE = 0;
const NONE = -1;

/** Reads numbers of seven bits a byte, lowest first. */
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  number() {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
  }
  /** `last` and a difference of either sign. */
  after(last) {
    const code = this.number();
    return last + (code % 2 ? -(code + 1) / 2 : code / 2);
  }
}

async function decodeBytes(text, compressed) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  if (!compressed) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function readPlaces(reader, files) {
  const places = [];
  let [file, line, column] = [0, 0, 0];
  for (let count = reader.number(); count > 0; --count) {
    file = reader.after(file);
    line = reader.after(line);
    column = reader.after(column);
    places.push(line === 0 ? "no place known" : `${files[file] ?? "line"}:${line}:${column}`);
  }
  return places;
}

/** One column per property of a command; what an op does not have is NONE. */
function readCommands(reader, streams) {
  const count = reader.number();
  const commands = {
    count,
    op: new Uint8Array(count),
    fn: new Int8Array(count).fill(NONE),  // of a launch
    component: new Uint16Array(count),
    stream: new Uint16Array(count),
    arg: new Int32Array(count).fill(NONE),  // channel, event, group, size of a pair
    stage: new Int32Array(count).fill(NONE),
    microbatch: new Int32Array(count).fill(NONE),
    place: new Uint32Array(count),
  };
  const lasts = new Map();
  for (let i = 0; i < count; ++i) {
    const head = reader.number();
    if (!lasts.has(head)) lasts.set(head, {stage: 0, microbatch: 0, number: 0, place: 0});
    const last = lasts.get(head);
    const code = Math.floor(head / streams.length);
    commands.stream[i] = head % streams.length;
    commands.op[i] = code < OPS.length ? code : LAUNCH;
    commands.place[i] = last.place = reader.after(last.place);
    if (code >= OPS.length) {
      commands.fn[i] = code - OPS.length;
      commands.component[i] = last.number = reader.after(last.number);
    } else if (code !== STEP)
      commands.arg[i] = last.number = reader.after(last.number);
    if (code >= OPS.length || code === SEND || code === RECV) {
      commands.stage[i] = last.stage = reader.after(last.stage);
      commands.microbatch[i] = last.microbatch = reader.after(last.microbatch);
    } else if (code === REDUCE) {
      commands.stage[i] = last.stage = reader.after(last.stage);
    } else if (code === STEP) {
      commands.stage[i] = last.number = reader.after(last.number);
    }
  }
  return commands;
}

/** The values of slots: their kind, and the commands that write and last read them. */
function readLives(reader) {
  const count = reader.number();
  const lives = {
    count,
    kind: new Uint8Array(count),
    begin: new Uint32Array(count),
    end: new Uint32Array(count)
  };
  let begin = 0;
  for (let i = 0; i < count; ++i) {
    lives.kind[i] = reader.number();
    lives.begin[i] = begin = reader.after(begin);
    lives.end[i] = begin + reader.number();
  }
  return lives;
}

function readRank(reader) {
  const streams = [];
  for (let count = reader.number(); count > 0; --count)
    streams.push({kind: reader.number(), target: reader.number()});
  const numEvents = reader.number();
  const commands = readCommands(reader, streams);
  const lives = readLives(reader);
  const phases = [];
  for (let count = reader.number(); count > 0; --count)
    phases.push({name: reader.number(), command: reader.number()});
  return {streams, numEvents, commands, lives, phases};
}

/** The facts, and `places` and `rankPrograms` beside them. */
async function readProgram(facts, text) {
  const reader = new Reader(await decodeBytes(text, facts.compressed));
  const places = readPlaces(reader, facts.files);
  const rankPrograms = Array.from({length: facts.ranks}, () => readRank(reader));
  return {...facts, places, rankPrograms};
}
