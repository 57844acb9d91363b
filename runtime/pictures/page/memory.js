// What a rank holds over time: counted as runtime/pictures/Occupancy.cpp does, and drawn.

/** Steps of what a rank holds: times, activations, and slots by kind. Ends go before begins. */
function measureMemory(program, run, rank) {
  const {commands, lives} = program.rankPrograms[rank];
  const times = run.ranks[rank];
  const numKinds = program.slotKinds.length;
  const changes = [];  // time, step, kind
  for (let i = 0; i < lives.count; ++i) {
    changes.push([getUnitTime(commands, times, lives.begin[i])[0], 1, lives.kind[i]]);
    changes.push([getUnitTime(commands, times, lives.end[i])[1], -1, lives.kind[i]]);
  }
  let pairEnd = 0;
  let pair = [0, 0];
  for (let i = 0; i < commands.count; ++i) {
    if (commands.op[i] === PAIR) {
      pair = getUnitTime(commands, times, i);
      pairEnd = i + 1 + commands.arg[i];
    }
    const fn = commands.component[i] === 0 ? commands.fn[i] : NONE;
    const [start, end] = i < pairEnd ? pair : [times.start[i], times.end[i]];
    if (fn === FWD) changes.push([start, 1, numKinds]);
    if (fn === BWD || fn === BWD_WEIGHT || (fn === FWD && !program.training))
      changes.push([end, -1, numKinds]);
  }
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const steps = [];
  const now = new Array(numKinds + 1).fill(0);
  for (const [time, step, kind] of changes) {
    now[kind] += step;
    if (steps.length && steps[steps.length - 1].time === time) steps.pop();
    steps.push({time, activations: now[numKinds], slots: now.slice(0, numKinds)});
  }
  return steps;
}

/** Draws what a rank holds over time, stacked by kind of slot or as one count of activations. */
function paintMemory(context, view, height, curves, bySlots, program, colours) {
  const top = 18;
  const bottom = height - 6;
  context.clearRect(0, 0, view.width + GUTTER + 10, height);
  const totals = (step) => (bySlots ? step.slots.reduce((a, b) => a + b, 0) : step.activations);
  const most = Math.max(
      1, ...curves.map(({steps}) => steps.reduce((a, step) => Math.max(a, totals(step)), 0)));
  const y = (value) => bottom - ((bottom - top) * value) / most;
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colours.faint;
  context.textAlign = "right";
  context.fillText(most, GUTTER - 8, top + 4);
  context.fillText(0, GUTTER - 8, bottom + 2);
  context.save();
  context.beginPath();
  context.rect(GUTTER, 0, view.width, height);
  context.clip();
  for (const {steps, isSelected} of curves) {
    if (!isSelected) {
      context.strokeStyle = colours.line;
      context.stroke(traceSteps(steps, view, (step) => y(totals(step)), y(0)));
    }
  }
  const selected = curves.find((curve) => curve.isSelected);
  if (selected && bySlots) paintStack(context, view, selected.steps, program, y);
  if (selected) {
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.75;
    context.stroke(traceSteps(selected.steps, view, (step) => y(totals(step)), y(0)));
    context.lineWidth = 1;
  }
  context.restore();
}

const SLOT_COLOURS = ["#7fbbea", "#2f6cae", "#bdacea", "#8450a8", "#f8d57e", "#3ca07b", "#a0a0a0"];

function paintStack(context, view, steps, program, y) {
  for (let kind = program.slotKinds.length - 1; kind >= 0; --kind) {
    const sum = (step) => step.slots.slice(0, kind + 1).reduce((a, b) => a + b, 0);
    const path = traceSteps(steps, view, (step) => y(sum(step)), y(0));
    path.lineTo(view.x(view.makespan), y(0));
    path.lineTo(view.x(0), y(0));
    context.fillStyle = SLOT_COLOURS[kind % SLOT_COLOURS.length];
    context.fill(path);
  }
}

function traceSteps(steps, view, getY, zero) {
  const path = new Path2D();
  path.moveTo(view.x(0), zero);
  let last = zero;
  for (const step of steps) {
    path.lineTo(view.x(step.time), last);
    last = getY(step);
    path.lineTo(view.x(step.time), last);
  }
  path.lineTo(view.x(view.makespan), last);
  return path;
}
