// The page: costs, numbers, pointer and keys around the chart.

/** "13.5" for 13,500,000 ticks. */
function printTicks(ticks, unit) {
  const whole = Math.floor(ticks / unit);
  const rest = String(Math.round(ticks - whole * unit))
                   .padStart(String(unit).length - 1, "0")
                   .replace(/0+$/, "");
  return rest ? `${whole}.${rest}` : `${whole}`;
}

/** What can be set: name, label, whether it may be 0, what it is derived from unless given. */
const COST_ROWS = [
  ["fwd", "F forward", false],
  ["bwd_input", "I input half", false],
  ["bwd_weight", "W weight half", false],
  ["bwd", "B backward", false, "I + W"],
  ["fused", "F&B fused pair", false, "its members"],
  ["transfer", "transfer", true],
  ["occupancy", "occupancy of a channel", true],
  ["reduce", "sum of gradients", true],
  ["step", "optimizer step", true],
];
const BY_STAGE = ["fwd", "bwd", "bwd_input", "bwd_weight", "reduce", "step"];
const COMPUTES = ["fwd", "bwd", "bwd_input", "bwd_weight"];
const LONGEST_COST = 1e9;

class Page {
  constructor(program) {
    this.program = program;
    this.costs = structuredClone(program.costs);
    this.changed = new Set();
    this.index = new OpIndex(program);
    this.rows =
        program.rankPrograms.map((_, rank) => makeRow(program, rank, this.index.pipelineOf));
    this.view = new View(program.ranks, program.phases.length > 0);
    this.painter = new ChartPainter(program, this.rows);
    this.chart = document.getElementById("chart");
    this.memory = document.getElementById("memory");
    this.tip = document.getElementById("tip");
    this.selected = 0;
    this.hovered = null;
    this.showsPath = false;
    this.bySlots = false;
    this.simulate();
    this.makeControls();
    this.makeLegend();
    this.listen();
    // Few ranks leave room for the curve of the memory.
    this.chart.style.flexBasis = `${AXIS + 8 + program.ranks * MOST_PITCH}px`;
    this.view.fit(this.run.makespan);
    new ResizeObserver(() => {
      this.resize();
      this.drawNow();
    }).observe(this.chart);
  }

  print(ticks) {
    return printTicks(ticks, this.program.ticksPerUnit);
  }

  // Costs

  simulate() {
    this.run = new Simulator(this.program, this.costs).run();
    this.summary = summarize(this.run);
    this.path = null;
    this.curves = new Map();
    this.rows.forEach((row, rank) => orderRow(row, this.run.ranks[rank]));
    this.showNumbers();
  }

  /**
   * The costs in ticks; those that are left out stay. null derives `bwd` and `fused` again. What
   * is known of single components and pairs no longer holds where their ops get other times.
   */
  setCosts(given) {
    for (const [name, value] of Object.entries(given)) {
      this.changed.add(name === "separate" ? "start" : name);
      if (BY_STAGE.includes(name))
        this.costs[name] = {common: value, stages: {}};
      else
        this.costs[name] = value;
      if (COMPUTES.includes(name)) this.forgetComponents(name);
      if (COMPUTES.includes(name) || name === "fused") this.costs.pairs = [];
    }
    this.simulate();
    this.view.rescale(this.run.makespan);
    this.showControls();
    this.draw();
  }

  forgetComponents(name) {
    const names = name.startsWith("bwd_") ? [name, "bwd"] : [name];
    this.costs.components =
        this.costs.components.filter(([[fn]]) => !names.includes(FUNCTIONS[fn]));
    const isForgotten = (text) => names.some((each) => text.startsWith(`${each}[`));
    this.costs.others = this.costs.others.filter((text) => !isForgotten(text));
  }

  /** As `--cost` takes them: with the profile where they came from one. */
  getCostText() {
    const {option} = this.costs;
    return option === null ? this.listCosts().join(",") : this.listOver(option).join(",");
  }

  /**
   * A profile, and what stands over it. It has what cannot be stated: sizes, and the times of
   * pairs, which hold until a time of an op or of all pairs is changed. Then all times are stated.
   */
  listOver(option) {
    const [file, ...given] = option.split(",");
    const getName = (text) => text.split("=")[0];
    const getBase = (text) => text.split(/[=[]/)[0];
    const isOfOps = (name) => COMPUTES.includes(name) || name === "fused";
    if ([...this.changed].some(isOfOps)) {
      const stated = this.listCosts();
      const names = new Set(stated.flatMap((text) => [getName(text), getBase(text)]));
      const isLeft = (text) => !isOfOps(getBase(text)) && !names.has(getBase(text));
      return [file, ...given.filter(isLeft), ...stated];
    }
    const isChanged = (text) => this.changed.has(getBase(text));
    return [
      file, ...given.filter((text) => !isChanged(text)), ...this.listCosts().filter(isChanged)
    ];
  }

  /** Every time that a name has. */
  listCosts() {
    const texts = [];
    for (const name of BY_STAGE) {
      const {common, stages} = this.costs[name];
      const hasDefault = name !== "bwd" && Object.keys(stages).length === 0;
      const unit = COMPUTES.includes(name) ? this.program.ticksPerUnit : 0;
      if (common !== null || hasDefault) texts.push(`${name}=${this.print(common ?? unit)}`);
      for (const [stage, ticks] of Object.entries(stages))
        texts.push(`${name}[${stage}]=${this.print(ticks)}`);
    }
    if (this.costs.fused !== null) texts.push(`fused=${this.print(this.costs.fused)}`);
    for (const name of ["transfer", "occupancy"])
      texts.push(`${name}=${this.print(this.costs[name])}`);
    return [...texts, ...this.costs.others, `start=${this.costs.separate ? "separate" : "joint"}`];
  }

  /** In ticks, or null where it is derived. By stage: that of the first. */
  getCost(name) {
    if (!BY_STAGE.includes(name)) return this.costs[name];
    const {common, stages} = this.costs[name];
    const first = Object.values(stages)[0] ?? null;
    const unit = COMPUTES.includes(name) ? this.program.ticksPerUnit : 0;
    return common ?? first ?? (name === "bwd" ? null : unit);
  }

  getDerived(name) {
    const bwd = this.getCost("bwd") ?? this.getCost("bwd_input") + this.getCost("bwd_weight");
    return name === "bwd" ? bwd : this.getCost("fwd") + bwd;
  }

  isUsed(name) {
    const some = (test) => this.program.rankPrograms.some(({commands}) => test(commands));
    if (name === "bwd") return some(({fn}) => fn.includes(BWD));
    if (name === "fused") return some(({op}) => op.includes(PAIR));
    if (name === "bwd_input" || name === "bwd_weight") return this.program.training;
    if (name === "transfer" || name === "occupancy") return this.program.channels.length > 0;
    if (name === "reduce") return this.program.groups.length > 0;
    return name === "fwd" || this.program.training;
  }

  makeControls() {
    const list = document.getElementById("costs");
    this.controls = new Map();
    for (const [name, label, mayBeZero, derivedFrom] of COST_ROWS) {
      if (!this.isUsed(name)) continue;
      const row = document.createElement("div");
      row.className = "cost";
      row.innerHTML = `<label for="cost-${name}"></label><input type="number" id="cost-${
                          name}" step="any" min="0">` +
          `<input type="range" id="slide-${name}" step="0.05">` +
          (derivedFrom ? `<label class="auto"><input type="checkbox" id="auto-${name}"> as ${
                             derivedFrom}</label>` :
                         "");
      row.querySelector("label").textContent = label;
      list.append(row);
      const [number, slider] =
          [row.querySelector("[type=number]"), row.querySelector("[type=range]")];
      const auto = row.querySelector("[type=checkbox]");
      slider.setAttribute("aria-label", label);
      slider.min = mayBeZero ? 0 : 0.05;
      slider.max = Math.max(
          4,
          Math.ceil(
              (3 * (this.getCost(name) ?? this.getDerived(name))) / this.program.ticksPerUnit));
      this.controls.set(name, {number, slider, auto});
      for (const input of [number, slider])
        input.addEventListener("input", () => this.readCost(name, input, mayBeZero));
      auto?.addEventListener(
          "change", () => this.setCosts({[name]: auto.checked ? null : this.getDerived(name)}));
    }
    const joint = document.getElementById("separate");
    const hasOffsets = this.costs.forwardDone !== null || this.costs.backwardDone !== null;
    joint.closest("label").hidden = !this.isUsed("fused") || hasOffsets;
    joint.addEventListener("change", () => this.setCosts({separate: joint.checked}));
    document.getElementById("reset").addEventListener("click", () => this.resetCosts());
    this.showControls();
  }

  /** The costs that the page came with. */
  resetCosts() {
    this.costs = structuredClone(this.program.costs);
    this.changed.clear();
    this.setCosts({});
  }

  readCost(name, input, mayBeZero) {
    const value = Number(input.value);
    const isGood =
        input.value !== "" && value < LONGEST_COST && (mayBeZero ? value >= 0 : value >= 1e-6);
    input.toggleAttribute("aria-invalid", !isGood);
    document.getElementById("message").textContent = isGood ?
        "" :
        `${name}: expected a number ${mayBeZero ? "from 0 on" : "above 0"}, below ${LONGEST_COST}`;
    if (isGood) this.setCosts({[name]: Math.round(value * this.program.ticksPerUnit)});
  }

  showControls() {
    for (const [name, {number, slider, auto}] of this.controls) {
      const ticks = this.getCost(name) ?? this.getDerived(name);
      const text = this.print(ticks);
      if (document.activeElement !== number || Number(number.value) !== Number(text))
        number.value = text;
      slider.value = text;
      if (auto) auto.checked = this.getCost(name) === null;
      const isByStage = BY_STAGE.includes(name) && Object.keys(this.costs[name].stages).length > 0;
      number.title = isByStage ? "differs from stage to stage; this is the first one's" : "";
      number.classList.toggle("by-stage", isByStage);
    }
    document.getElementById("separate").checked = this.costs.separate;
    document.getElementById("command").textContent = `--cost=${this.getCostText()}`;
  }

  // Numbers

  showNumbers() {
    const {summary} = this;
    const percent = (time) =>
        (summary.makespan ? ((100 * time) / summary.makespan).toFixed(1) : "0.0");
    const set = (id, text) => (document.getElementById(id).textContent = text);
    set("makespan", this.print(summary.makespan));
    set("ideal", this.print(summary.ideal));
    set("bubble", this.print(summary.worst));
    set("percent", `${percent(summary.worst)} %`);
    set("rate", summary.rate.toFixed(4));
    const rows = summary.busy.map((busy, rank) => {
      const cells = [
        rank, this.print(busy), this.print(summary.bubbles[rank]), percent(summary.bubbles[rank]),
        summary.peakActivations[rank], summary.weightQueue[rank], summary.sends[rank]
      ];
      return `<tr data-rank="${rank}">${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
    });
    document.getElementById("ranks").innerHTML = rows.join("");
    const isExact = summary.makespan < Number.MAX_SAFE_INTEGER;
    set("exact",
        isExact ? "" : "these times are too long for a page to be exact: use a larger unit");
  }

  makeLegend() {
    const used = new Set(this.rows.flatMap((row) => [...new Set(row.kind)]));
    const legend = document.getElementById("legend");
    for (const [kind, {name, colours}] of this.program.kinds.entries()) {
      if (!used.has(kind) || (kind >= BAR_STEP && !this.program.training)) continue;
      const patches =
          (kind >= BAR_STEP ? colours.slice(0, 1) : colours)
              .map(
                  (colour, variant) => `<i style="background:${colour}"><b style="width:${
                      kind >= BAR_STEP ? 0 : 100 * this.painter.getMark(variant)}%"></b></i>`);
      legend.insertAdjacentHTML("beforeend", `<span>${patches.join("")} ${name}</span>`);
    }
    if (this.program.variants.length > 1)
      this.program.variants.forEach((name, variant) => {
        const width = 100 * this.painter.getMark(variant);
        legend.insertAdjacentHTML(
            "beforeend", `<span><i class="patch"><b style="width:${width}%"></b></i> </span>`);
        legend.lastChild.append(name);
      });
    if (this.isUsed("fused"))
      legend.insertAdjacentHTML(
          "beforeend", "<span><i class=\"frame\"></i> fused: both at once</span>");
    legend.insertAdjacentHTML("beforeend", "<span><i class=\"idle\"></i> idle</span>");
  }

  // Drawing

  getColours() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(`--${name}`).trim();
    const names = ["row", "text", "faint", "line", "frame", "path", "accent"];
    return {...Object.fromEntries(names.map((name) => [name, get(name)])), selected: this.selected};
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.chart, this.memory]) {
      canvas.width = Math.round(canvas.clientWidth * ratio);
      canvas.height = Math.round(canvas.clientHeight * ratio);
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.view.resize(this.chart.clientWidth, this.chart.clientHeight);
  }

  /** Soon, and once however often it is asked for. */
  draw() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.drawNow();
    });
  }

  drawNow() {
    const context = this.chart.getContext("2d");
    const colours = this.getColours();
    this.painter.paint(context, this.view, this.run, colours);
    if (this.showsPath)
      this.painter.paintPath(context, (this.path ??= findCriticalPath(this.program, this.run)));
    if (this.hovered) this.drawDependences(context);
    const few = this.program.ranks <= 16;
    const shown = few ? this.run.ranks.map((_, rank) => rank) : [this.selected];
    const curves =
        shown.map((rank) => ({steps: this.getCurve(rank), isSelected: rank === this.selected}));
    paintMemory(
        this.memory.getContext("2d"), this.view, this.memory.clientHeight, curves, this.bySlots,
        this.program, colours);
    document.getElementById("memory-title").textContent = this.bySlots ?
        `slots of rank ${this.selected} that hold a value, by kind` :
        `activations of rank ${
            this.selected}: micro-batches between their forward and the end of their backward`;
    document.getElementById("slots-legend").hidden = !this.bySlots;
  }

  getCurve(rank) {
    if (!this.curves.has(rank)) this.curves.set(rank, measureMemory(this.program, this.run, rank));
    return this.curves.get(rank);
  }

  drawDependences(context) {
    const [rank, command] = this.hovered;
    const cause = this.findCause(rank, command);
    const row = this.rows[rank];
    const bar = row.command.indexOf(command);
    this.painter.paintHovered(context, rank, command, row.part[bar], row.parts[bar]);
    for (const producer of this.index.getProducers(rank, command)) {
      const isCause = cause && cause.rank === producer[0] &&
          (cause.command === producer[1] || this.isInPair(cause.rank, cause.command, producer[1]));
      this.painter.paintArrow(context, producer, [rank, command], isCause);
    }
  }

  isInPair(rank, pair, member) {
    const {op, arg} = this.program.rankPrograms[rank].commands;
    return op[pair] === PAIR && member > pair && member <= pair + arg[pair];
  }

  /** The op that ended last before a command could start, and the transfers in between. */
  findCause(rank, command) {
    let through = [];
    for (;;) {
      const state = this.run.ranks[rank];
      const next = state.afterCommand[command];
      if (next === NONE) return null;
      [rank, command] = [state.afterRank[command], next];
      const {op} = this.program.rankPrograms[rank].commands;
      if (op[command] !== SEND && op[command] !== RECV) return {rank, command, through};
      through = [...through, [rank, command]];
    }
  }

  // Words

  describe(rank, command) {
    const {op, fn, arg, stage, microbatch} = this.program.rankPrograms[rank].commands;
    switch (op[command]) {
      case LAUNCH:
        return `${FUNCTIONS[fn[command]]} of micro-batch ${microbatch[command]}, stage ${
            stage[command]}`;
      case PAIR:
        return Array.from({length: arg[command]}, (_, i) => this.describe(rank, command + 1 + i))
            .join(" with ");
      case SEND:
      case RECV: {
        const [source, destination, kind] = this.program.channels[arg[command]];
        return `${kind ? "gradient" : "activation"} of micro-batch ${
            microbatch[command]} from rank ${source} to ${destination}`;
      }
      case REDUCE:
        return `sum of the gradients of stage ${stage[command]}`;
      case STEP:
        return `step of stage ${stage[command]}`;
      default:
        return OPS[op[command]];
    }
  }

  describeHovered(rank, command) {
    const state = this.run.ranks[rank];
    const {place} = this.program.rankPrograms[rank].commands;
    const lines = [
      this.describe(rank, command),
      `rank ${rank}, ${this.print(state.start[command])} to ${this.print(state.end[command])}`,
      this.program.places[place[command]] ?? "no place known"
    ];
    const cause = this.findCause(rank, command);
    if (!cause) return [...lines, "waits for nothing"];
    const where = cause.rank === rank ? "before it" : `on rank ${cause.rank}`;
    lines.push(`starts after ${this.describe(cause.rank, cause.command)} ${where}, end ${
        this.print(this.run.ranks[cause.rank].end[cause.command])}`);
    const transfer = cause.through[cause.through.length - 1];
    if (transfer) lines.push(`through the ${this.describe(...transfer)}`);
    return lines;
  }

  // Pointer and keys

  /** [rank, command] of the bar at a place of the chart, or null. */
  findBar(x, y) {
    const rank = this.view.rankAt(y);
    if (rank === NONE || x < GUTTER) return null;
    const row = this.rows[rank];
    const times = this.run.ranks[rank];
    const time = this.view.timeAt(x);
    const inside = (y - this.view.y(rank)) / this.view.barHeight;
    for (let i = findFirst(row, times, time); i < row.order.length; ++i) {
      const bar = row.order[i];
      const at = row.command[bar];
      if (times.start[at] > time) return null;
      const isHit = row.kind[bar] !== BAR_REDUCE &&
          Math.min(row.parts[bar] - 1, Math.floor(inside * row.parts[bar])) === row.part[bar];
      if (times.end[at] > time && isHit) return [rank, at];
    }
    return null;
  }

  hover(x, y) {
    const rank = this.view.rankAt(y);
    this.hovered = this.findBar(x, y);
    if (rank !== NONE) this.selected = rank;
    this.tip.hidden = !this.hovered;
    if (this.hovered) {
      this.tip.textContent = this.describeHovered(...this.hovered).join("\n");
      const box = this.chart.getBoundingClientRect();
      const left = Math.min(box.left + x + 24, window.innerWidth - this.tip.offsetWidth - 8);
      const below = box.top + y + 28;
      const fits = below + this.tip.offsetHeight < window.innerHeight;
      this.tip.style.left = `${Math.max(4, left)}px`;
      this.tip.style.top = `${fits ? below : box.top + y - this.tip.offsetHeight - 12}px`;
    }
    this.draw();
  }

  listen() {
    let dragged = null;
    const at = (event) => {
      const box = this.chart.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.chart.addEventListener("pointerdown", (event) => {
      dragged = at(event);
      this.chart.setPointerCapture(event.pointerId);
    });
    this.chart.addEventListener("pointerup", () => (dragged = null));
    this.chart.addEventListener("pointermove", (event) => {
      const place = at(event);
      if (dragged) this.view.pan(dragged[0] - place[0], dragged[1] - place[1]);
      if (dragged) dragged = place;
      this.hover(...place);
    });
    this.chart.addEventListener("pointerleave", () => this.hover(-1, -1));
    this.chart.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [x] = at(event);
      if (event.shiftKey)
        this.view.pan(event.deltaY + event.deltaX, 0);
      else if (event.altKey)
        this.view.setPitch(this.view.pitch * Math.exp(-event.deltaY / 400));
      else
        this.view.zoom(Math.exp(event.deltaY / 400), Math.max(x, GUTTER));
      this.hover(...at(event));
    }, {passive: false});
    this.chart.addEventListener("dblclick", () => this.fit());
    window.addEventListener("keydown", (event) => this.pressKey(event));
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    for (const [id, act] of [
             ["fit", () => this.fit()], ["path", () => this.togglePath()],
             ["kind", () => this.toggleSlots()], ["theme", () => this.switchTheme()]])
      document.getElementById(id).addEventListener("click", act);
  }

  pressKey(event) {
    const isTyping = event.target.matches("input[type=number], input[type=range]");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const middle = GUTTER + this.view.width / 2;
    const select = (step) =>
        (this.selected = Math.min(this.program.ranks - 1, Math.max(0, this.selected + step)));
    const actions = {
      "+": () => this.view.zoom(0.8, middle),
      "=": () => this.view.zoom(0.8, middle),
      "-": () => this.view.zoom(1.25, middle),
      0: () => this.fit(),
      ArrowLeft: () => this.view.pan(-80, 0),
      ArrowRight: () => this.view.pan(80, 0),
      ArrowUp: () => select(-1),
      ArrowDown: () => select(1),
      PageUp: () => this.view.pan(0, -200),
      PageDown: () => this.view.pan(0, 200),
      "[": () => this.view.setPitch(this.view.pitch / 1.2),
      "]": () => this.view.setPitch(this.view.pitch * 1.2),
      c: () => this.togglePath(),
      m: () => this.toggleSlots(),
      t: () => this.switchTheme(),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
    this.draw();
  }

  fit() {
    this.view.fit(this.run.makespan);
    this.draw();
  }

  togglePath() {
    this.showsPath = !this.showsPath;
    document.getElementById("path").setAttribute("aria-pressed", this.showsPath);
    this.draw();
  }

  toggleSlots() {
    this.bySlots = !this.bySlots;
    document.getElementById("kind").setAttribute("aria-pressed", this.bySlots);
    this.draw();
  }

  switchTheme() {
    const root = document.documentElement;
    const isDark = root.dataset.theme === "dark" ||
        (root.dataset.theme === "auto" &&
         window.matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = isDark ? "light" : "dark";
    this.draw();
  }
}

async function start() {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const program = await readProgram(facts, document.getElementById("program").textContent.trim());
  const page = new Page(program);
  const legend = document.getElementById("slots-legend");
  legend.innerHTML = facts.slotKinds
                         .map(
                             (name, kind) => `<span><i style="background:${
                                 SLOT_COLOURS[kind % SLOT_COLOURS.length]}"></i> ${name}</span>`)
                         .join("");
  window.dualpipe = page;  // for the console, and for tests
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  document.getElementById("message").textContent = `this page cannot be shown: ${error.message}`;
  throw error;
});
