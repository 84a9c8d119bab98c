/* Class means on three dimensions, on a canvas: dragged by pointer, turned by arrow keys, walked through the layers. */

const TURN = Math.PI / 24; // by one press of a key
const WALK_TIME = 600; // milliseconds from layer to layer
const START = { yaw: 0.6, pitch: 0.35 };
const LINE = 13; // pixels from name to name

/** A point turned around the vertical axis, then towards the reader. */
function turned([x, y, z], { yaw, pitch }) {
  const across = x * Math.cos(yaw) + z * Math.sin(yaw);
  const depth = -x * Math.sin(yaw) + z * Math.cos(yaw);
  return [across, y * Math.cos(pitch) - depth * Math.sin(pitch), y * Math.sin(pitch) + depth * Math.cos(pitch)];
}

/** A point on the way from one layer to the next. */
function onTheWay(from, to, share) {
  if (!from || !to) return to ?? null;
  return to.map((value, axis) => from[axis] + share * (value - from[axis]));
}

/** Paint one picture: the frame of the ideal faint, then arms to the class means, the nearest last. */
function paintSpace(context, { wide, high, reach, points, ideal, names, colors, view, lone }) {
  const middle = { x: wide / 2, y: high / 2 };
  const unit = Math.min(0.47 * high, 0.36 * wide);
  const place = (point) => {
    const [x, y, z] = turned(point, view).map((value) => value / reach);
    const near = 1 / (1 - 0.2 * z);
    return { x: middle.x + unit * x * near, y: middle.y - unit * y * near, z, near };
  };
  const arm = (end, color, width, dash) => {
    context.strokeStyle = color;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(middle.x, middle.y);
    context.lineTo(end.x, end.y);
    context.stroke();
  };
  context.clearRect(0, 0, wide, high);
  context.globalAlpha = 0.55;
  for (const corner of ideal) {
    const end = place(corner);
    arm(end, colors.rule, 1, [4, 4]);
    context.setLineDash([]);
    context.beginPath();
    context.arc(end.x, end.y, 7, 0, 2 * Math.PI);
    context.stroke();
  }
  const labels = [];
  const ends = points.flatMap((point, kind) => (point ? [{ kind, ...place(point) }] : []));
  for (const end of ends.sort((one, other) => one.z - other.z)) {
    const faint = lone !== null && lone !== end.kind;
    const color = colors.classes[end.kind % CLASS_COLORS];
    context.globalAlpha = faint ? 0.12 : 0.55 + 0.4 * Math.min(Math.max((end.z + 1) / 2, 0), 1);
    arm(end, color, 2, []);
    context.fillStyle = color;
    context.save();
    context.translate(end.x, end.y);
    context.scale(1.4 * end.near, 1.4 * end.near);
    context.fill(new Path2D(SHAPES[classSymbol(end.kind)]));
    context.restore();
    if (faint || (points.length > 20 && lone !== end.kind)) continue;
    labels.push({ text: short(names[end.kind], 16), x: end.x, y: end.y + 4, right: end.x > middle.x });
  }
  context.globalAlpha = 1;
  paintLabels(context, labels, colors);
}

/** Names beside their points, from top to bottom, each moved down as far as the one above it needs. */
function paintLabels(context, labels, colors) {
  context.fillStyle = colors.ink;
  context.strokeStyle = colors.panel;
  context.lineWidth = 3;
  context.setLineDash([]);
  const placed = [];
  for (const { text, x, y, right } of labels.sort((one, other) => one.y - other.y)) {
    const wide = context.measureText(text).width;
    const left = right ? x + 9 : x - 9 - wide;
    const covers = (at) => placed.some((other) => Math.abs(other.y - at) < LINE && left < other.left + other.wide && other.left < left + wide);
    let at = y;
    while (covers(at)) at += 1;
    placed.push({ left, wide, y: at });
    context.textAlign = "left";
    context.strokeText(text, left, at);
    context.fillText(text, left, at);
  }
}

function spaceFigure(figure, [profile]) {
  const { space } = profile;
  const parts = partsOf(figure);
  const state = { at: space.layers.length - 1, from: null, view: { ...START }, lone: null, colors: null };
  // every layer fills the drawing: how much of the lengths three dimensions show is said below it
  const longest = (points) => Math.max(1e-9, ...[...points, ...space.etf].filter(Boolean).map((point) => Math.hypot(...point)));
  const reaches = space.points.map(longest);
  const canvas = element("canvas", { role: "img", tabindex: "0" });
  const context = canvas.getContext("2d");
  let [wide, high] = [400, 400];

  const paintNow = (share = 1) => {
    const to = space.points[state.at];
    const from = state.from ?? state.at;
    const points = to.map((point, kind) => onTheWay(space.points[from][kind], point, share));
    const reach = reaches[from] + share * (reaches[state.at] - reaches[from]);
    context.font = `12px ${getComputedStyle(figure).fontFamily}`;
    paintSpace(context, { wide, high, reach, points, ideal: space.etf, names: space.names, ...state });
  };
  const kept = element("span", { class: "entry" });
  const walk = (position) => {
    const from = state.at;
    state.at = position;
    kept.textContent = `three dimensions show ${percent(space.kept[position])} of the squared lengths`;
    canvas.setAttribute("aria-label", `${figure.dataset.label} ${layerTitle(profile, space.layers[position])}.`);
    if (!("drawn" in figure.dataset)) return;
    if (stillness.matches || from === position) return paintNow();
    state.from = from;
    const began = performance.now();
    const frame = (now) => {
      if (state.at !== position) return; // another step has begun
      const share = Math.min(Math.max((now - began) / WALK_TIME, 0), 1);
      paintNow(share * share * (3 - 2 * share));
      if (share < 1) requestAnimationFrame(frame);
      else state.from = null;
    };
    requestAnimationFrame(frame);
  };
  const turn = (yaw, pitch) => {
    state.view.yaw += yaw;
    state.view.pitch = Math.min(Math.max(state.view.pitch + pitch, -Math.PI / 2), Math.PI / 2);
    canvas.dataset.view = `${state.view.yaw.toFixed(3)} ${state.view.pitch.toFixed(3)}`;
    paintNow();
  };
  const draw = (width) => {
    const sharp = devicePixelRatio || 1;
    [wide, high] = [Math.min(width, 680), Math.min(width, 440)];
    [canvas.width, canvas.height] = [Math.round(wide * sharp), Math.round(high * sharp)];
    [canvas.style.width, canvas.style.height] = [`${wide}px`, `${high}px`];
    context.setTransform(sharp, 0, 0, sharp, 0, 0);
    const classes = Array.from({ length: CLASS_COLORS }, (_, kind) => computedColor(`class-${kind}`));
    state.colors = { classes, ink: computedColor("ink"), panel: computedColor("panel"), rule: computedColor("muted") };
    paintNow();
    return canvas;
  };

  const keys = { ArrowLeft: [-TURN, 0], ArrowRight: [TURN, 0], ArrowUp: [0, TURN], ArrowDown: [0, -TURN] };
  canvas.addEventListener("keydown", (event) => {
    if (!(event.key in keys)) return;
    event.preventDefault();
    turn(...keys[event.key]);
  });
  canvas.style.touchAction = "pan-y"; // a finger across turns, a finger up or down scrolls the page
  canvas.style.cursor = "grab";
  canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) turn(event.movementX / 120, event.movementY / 120);
  });

  walk(state.at);
  if (space.layers.length > 1) {
    const describe = (position) => layerTitle(profile, space.layers[position]);
    const range = slider("Layer", space.layers.length, state.at, describe, walk);
    parts.controls.append(range.node, playButton(range, "layers"));
  }
  const sample = (kind) => ({ color: classPaint(kind), symbol: classSymbol(kind), line: false });
  const choose = (lone) => ((state.lone = lone), paintNow());
  parts.key.replaceChildren(
    ...classKey(space.names, sample, choose),
    keyEntry(swatch({ color: paint("muted"), symbol: "circle", hollow: true, dash: "4 4" }), "a simplex ETF"),
    kept,
  );
  register(figure, draw, 440);
}
