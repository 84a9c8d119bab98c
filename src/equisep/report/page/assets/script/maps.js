/* Samples on two principal components of each layer, with a slider through the layers, and through training where it was kept. */

const FAINT = 0.08;
const MOST_BUTTONS = 20;

/** The points of one layer as rows. */
function mapPoints(flat, { labels, names }, order) {
  return labels.map((label, sample) => {
    const kind = order.get(label);
    return { x: flat[2 * sample], y: flat[2 * sample + 1], kind, title: short(names[kind], 40) };
  });
}

/** The name of each class above its points, or below them, as near as it covers no other name. */
function mapNames(points, names, { unit, lone }) {
  const placed = [];
  for (const [kind, name] of names.entries()) {
    const own = points.filter((point) => point.kind === kind);
    if (own.length === 0 || (lone !== null && lone !== kind)) continue;
    const middle = (axis) => own.reduce((sum, point) => sum + point[axis], 0) / own.length;
    const text = short(name, 16);
    const half = (3.6 * Array.from(text).length + 2) * unit;
    const x = middle("x");
    const covers = (at) => placed.some((other) => Math.abs(other.x - x) < other.half + half && Math.abs(other.y - at) < 14 * unit);
    const y = middle("y");
    const spread = Math.sqrt(own.reduce((sum, point) => sum + (point.y - y) ** 2, 0) / own.length);
    const away = Math.min(1.3 * spread, 40 * unit) + 9 * unit;
    const moves = [0, 1, 2, 3, 4].flatMap((step) => [y + away + 14 * unit * step, y - away - 14 * unit * step]);
    placed.push({ x, y: moves.find((at) => !covers(at)) ?? moves[0], text, half });
  }
  return placed;
}

/**
 * A key of buttons, one per class: pressing one leaves it alone in the drawing, pressing it again brings all back.
 * Of many classes a list to choose one from.
 */
function classKey(names, sample, choose) {
  if (names.length > MOST_BUTTONS) return [classList(names, choose)];
  let alone = null;
  const buttons = names.map((name, kind) => {
    const button = element("button", { type: "button", "aria-pressed": "false" }, swatch(sample(kind)), short(name, 30));
    button.addEventListener("click", () => {
      alone = alone === kind ? null : kind;
      for (const [position, other] of buttons.entries()) other.setAttribute("aria-pressed", String(position === alone));
      choose(alone);
    });
    return button;
  });
  return buttons;
}

/** A list of all classes, of which one can be looked at alone. */
function classList(names, choose) {
  const options = names.map((name, kind) => element("option", { value: kind }, short(name, 60)));
  const list = element("select", {}, element("option", { value: "" }, `all ${names.length}`), ...options);
  list.addEventListener("change", () => choose(list.value === "" ? null : Number(list.value)));
  return element("label", { class: "check" }, "Class", list);
}

function mapFigure(figure, [profile]) {
  const maps = "history" in figure.dataset && data.history?.maps ? data.history.maps : profile.maps;
  const through = maps.numbers ?? null; // readings during training, where maps of them were kept
  const order = new Map(maps.classes.map((kind, position) => [kind, position]));
  const parts = partsOf(figure);
  const state = { layer: maps.layers.length - 1, reading: through ? through.length - 1 : 0, alone: null };
  const flat = () => (through ? maps.points[state.reading] : maps.points)[state.layer];
  const explained = () => (through ? maps.explained[state.reading] : maps.explained)[state.layer];

  const draw = (width) => {
    const points = mapPoints(flat(), maps, order);
    const lone = state.alone;
    const side = Math.min(width, 620);
    const reach = 1.06 * Math.max(1, ...points.map((point) => Math.max(Math.abs(point.x), Math.abs(point.y))));
    const [first, second] = explained();
    const share = (value) => (drawable(value) ? ` (${percent(value)} of the variance)` : "");
    const groups = [...order.values()].sort((one, other) => (one === lone) - (other === lone));
    const high = Math.min(side, 520);
    const unit = (2 * reach) / (high - 56); // of the drawing, in one pixel
    const texts = maps.names.length > MOST_BUTTONS && lone === null ? [] : mapNames(points, maps.names, { unit, lone });
    const size = points.length > 1500 ? 2 : points.length > 400 ? 2.8 : 3.6;
    const options = {
      width: side,
      height: high,
      margin: 28,
      x: { domain: [-reach, reach], ticks: [], label: `first component${share(first)}`, labelAnchor: "center", labelArrow: "none" },
      y: { domain: [-reach, reach], ticks: [], label: `second component${share(second)}`, labelArrow: "none" },
      marks: [
        Plot.frame({ stroke: "var(--rule)" }),
        ...groups.map((kind) =>
          Plot.dot(points.filter((point) => point.kind === kind), {
            x: "x",
            y: "y",
            r: size,
            symbol: classSymbol(kind),
            fill: classPaint(kind),
            fillOpacity: lone === null || lone === kind ? 0.75 : FAINT,
          }),
        ),
        Plot.text(texts, { x: "x", y: "y", text: "text", fill: "var(--ink)", stroke: "var(--panel)", strokeWidth: 4, fontWeight: 600 }),
      ],
    };
    const where = layerTitle(profile, maps.layers[state.layer]);
    return drawing(`${figure.dataset.label} ${where}.`, options, points, "both");
  };

  const again = () => redraw(figure);
  if (maps.layers.length > 1) {
    const describe = (position) => layerTitle(profile, maps.layers[position]);
    const range = slider(profile.each === "block" ? "Block" : "Layer", maps.layers.length, state.layer, describe, (position) => ((state.layer = position), again()));
    parts.controls.append(range.node, playButton(range, "layers"));
  }
  if (through && through.length > 1) {
    const { unit } = data.history;
    const describe = (position) => `${unit} ${through[position]}`;
    const range = slider(unit === "step" ? "Step" : "Epoch", through.length, state.reading, describe, (position) => ((state.reading = position), again()));
    parts.controls.append(range.node, playButton(range, `${unit}s`));
  }
  const sample = (kind) => ({ color: classPaint(kind), symbol: classSymbol(kind), line: false });
  parts.key.replaceChildren(...classKey(maps.names, sample, (alone) => ((state.alone = alone), again())));
  register(figure, draw, 520);
}
