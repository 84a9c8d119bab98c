/* What the charts over layers share: axes, marks of a curve, toggles, hovering, and the arrow keys that do the same. */

const STYLE = { fontFamily: "inherit", fontSize: "12px", background: "transparent", color: "var(--ink)", overflow: "visible" };
const REACH = 60; // pixels from which a point is taken for the one meant
const STEPS = [[1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];

/** Ticks of a logarithmic axis, at most `most` of them, on round numbers; undefined where the axis is too short for them. */
function logTicks([low, high], most = 8) {
  const from = Math.floor(Math.log10(low));
  const to = Math.ceil(Math.log10(high));
  const tens = Array.from({ length: to - from + 1 }, (_, step) => from + step);
  const inside = (steps, powers) =>
    powers.flatMap((power) => steps.map((step) => step * 10 ** power)).filter((tick) => tick >= low && tick <= high);
  for (const steps of STEPS) {
    const ticks = inside(steps, tens);
    if (ticks.length < 2) return undefined;
    if (ticks.length <= most) return ticks;
  }
  const every = Math.ceil(tens.length / most);
  return inside([1], tens.filter((power) => power % every === 0));
}

/** A tick in as few letters as it takes. */
function tickText(value) {
  const size = Math.abs(value);
  const plain = value === 0 || (size >= 1e-3 && size < 1e5);
  return typeset(plain ? String(Number(value.toPrecision(6))) : value.toExponential().replace("e+", "e"));
}

/** The layers that have room for their number below the axis. */
function layerTicks(indices, width) {
  const distinct = [...new Set(indices)].sort((one, other) => one - other);
  const room = Math.max(2, Math.floor((width - 80) / 30));
  const every = [1, 2, 5, 10, 20, 50, 100, 200].find((step) => distinct.length / step <= room) ?? 500;
  return distinct.filter((index) => every === 1 || index % every === 0);
}

/** The horizontal axis of charts over layers. */
function layerAxis(profiles, width) {
  const indices = profiles.flatMap((profile) => profile.layers.index);
  const input = profiles.every((profile) => profile.layers.name[0] === "input" && profile.layers.index[0] === 0);
  const each = profiles.every((profile) => profile.each === "block") ? "block" : "layer";
  const low = Math.min(...indices);
  const high = Math.max(...indices);
  return {
    domain: [low - 0.35, high + 0.35],
    label: input ? `${each} (0 = input)` : each,
    labelAnchor: "center",
    labelArrow: "none",
    ticks: layerTicks(indices, width),
    tickFormat: String,
    grid: false,
  };
}

/** A vertical axis over these values; shares of 1 as percent. */
function valueAxis(values, { logarithmic, label, share = false, zero = false }) {
  const known = values.filter((value) => drawable(value, logarithmic));
  let low = known.length ? Math.min(...known) : 1;
  let high = known.length ? Math.max(...known) : 1;
  if (logarithmic) {
    const pad = Math.max((high / low) ** 0.04, 1.05);
    [low, high] = [low / pad, high * pad];
  } else {
    if (zero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
    const pad = 0.04 * (high - low || Math.abs(high) || 1);
    [low, high] = [zero && low === 0 ? 0 : low - pad, zero && high === 0 ? 0 : high + pad];
  }
  return {
    type: logarithmic ? "log" : "linear",
    domain: [low, high],
    ticks: (logarithmic && logTicks([low, high])) || 6,
    tickFormat: share ? (value) => `${tickText(100 * value)} %` : tickText,
    label,
    labelArrow: "none",
    grid: true,
  };
}

/** The vertical axis itself: Plot would leave out most labels of a logarithmic one. */
function axisMarks(axis) {
  if (axis.type !== "log" || !Array.isArray(axis.ticks)) return [];
  return [Plot.axisY(axis.ticks, { text: axis.ticks.map(tickText), label: axis.label, labelArrow: "none" })];
}

/** Where a point of a drawing lies, in its own pixels. */
function pixelOf(svg, axis, value) {
  const scale = svg.scale(axis);
  return scale.apply(value) + (scale.bandwidth ?? 0) / 2;
}

/** The point next to one in the direction of a key; the same where there is none. */
function neighbor(points, current, key) {
  if (key === "Home" || key === "End") return points[key === "Home" ? 0 : points.length - 1];
  if (!current) return points[0];
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  let best = current;
  let least = Infinity;
  for (const point of points) {
    const ahead = (point.px - current.px) * dx + (point.py - current.py) * dy;
    const aside = Math.abs((point.px - current.px) * dy) + Math.abs((point.py - current.py) * dx);
    const cost = ahead + 3 * aside;
    if (ahead > 0.5 && cost < least) [best, least] = [point, cost];
  }
  return best;
}

/** Let the arrow keys point where a mouse would, and say what stands there. */
function walkable(svg, points, live) {
  const known = points
    .map((point) => ({ ...point, px: pixelOf(svg, "x", point.x), py: pixelOf(svg, "y", point.y) }))
    .sort((one, other) => one.px - other.px || one.py - other.py);
  let current = null;
  const send = (type, point) => {
    const at = point ? new DOMPoint(point.px, point.py).matrixTransform(svg.getScreenCTM()) : { x: 0, y: 0 };
    svg.dispatchEvent(new PointerEvent(type, { clientX: at.x, clientY: at.y, pointerType: "mouse", bubbles: true }));
  };
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", (event) => {
    if (!/^(Arrow(Left|Right|Up|Down)|Home|End)$/.test(event.key) || known.length === 0) return;
    event.preventDefault();
    current = neighbor(known, current, event.key);
    send("pointermove", current);
    live.textContent = current.title.replaceAll("\n", ", ");
  });
  svg.addEventListener("blur", () => {
    send("pointerleave", null);
    current = null;
    live.textContent = "";
  });
}

/** The tip of a drawing: what stands at the point nearest to the mouse, along the axis or in both directions. */
function tipMark(points, width, along = "x", facets = {}) {
  const pointing = along === "x" ? Plot.pointerX : Plot.pointer;
  const look = { fill: "var(--panel)", stroke: "var(--rule)", lineWidth: width < NARROW ? 12 : 24, lineHeight: 1.25 };
  return Plot.tip(points, pointing({ x: "x", y: "y", title: "title", maxRadius: REACH, ...facets, ...look }));
}

/** One image with one label: what Plot calls its parts is kept aside, since labels need a role. */
function asImage(svg) {
  svg.setAttribute("role", "img");
  for (const part of svg.querySelectorAll("[aria-label]")) {
    part.dataset.mark = part.getAttribute("aria-label");
    part.removeAttribute("aria-label");
  }
}

/** A drawing by Plot as a node with its label, its tip and its keys. `points` are { x, y, title }. */
function drawing(label, options, points, along = "x") {
  const svg = Plot.plot({
    ...options,
    marks: [...axisMarks(options.y), ...options.marks, ...(points.length ? [tipMark(points, options.width, along)] : [])],
    style: STYLE,
    ariaLabel: label,
  });
  asImage(svg);
  if (points.length === 0) return svg;
  const live = element("p", { class: "visually-hidden", "aria-live": "polite" });
  walkable(svg, points, live);
  return element("div", { class: "chart" }, svg, live);
}

/** The marks of one curve: whiskers, which end at the axis where they reach to 0, line, points. */
function curveMarks({ rows, color, symbol, dash, hollow, joined, width = 1.8, opacity = 1 }, logarithmic, room, floor) {
  const drawn = rows.filter((row) => drawable(row.y, logarithmic));
  const whiskers = drawn.filter((row) => drawable(row.low) && drawable(row.high, logarithmic));
  const marks = [];
  const from = (row) => (logarithmic ? Math.max(row.low, floor) : row.low);
  if (whiskers.length) marks.push(Plot.ruleX(whiskers, { x: "x", y1: from, y2: "high", stroke: color, strokeWidth: 1.2, strokeOpacity: 0.8 }));
  if (joined) {
    const open = rows.map((row) => ({ x: row.x, y: drawable(row.y, logarithmic) ? row.y : NaN }));
    marks.push(Plot.line(open, { x: "x", y: "y", stroke: color, strokeWidth: width, strokeDasharray: dash, strokeOpacity: opacity }));
  }
  if (symbol) {
    const size = Math.min(Math.max(room / drawn.length / 3.5, 1.8), 4); // points that do not grow into each other
    marks.push(Plot.dot(drawn, { x: "x", y: "y", r: size, symbol, fill: hollow ? "var(--panel)" : color, stroke: color, strokeWidth: 1.5 }));
  }
  return marks;
}

/** A straight or bent line through given corners. */
function lineMark(corners, style) {
  return Plot.line(corners, { x: (corner) => corner[0], y: (corner) => corner[1], ...style });
}

/**
 * A chart of curves against layers with a checkbox for each kind of curve.
 * `kinds`: { id, name, shown, sample, curves: [{ rows, … }], lines: [{ corners, style }] }; `extra(logarithmic)` gives more marks, at
 * heights of which the axis has those that are `also` given.
 */
function curvesFigure(figure, { kinds, profiles, label, logarithmic = true, toggle = false, height = 360, top = 28, extra = () => [], also = [], share = false, key = [] }) {
  const parts = partsOf(figure);
  const state = { logarithmic, shown: new Map(kinds.map((kind) => [kind.id, kind.shown])) };
  const draw = (width) => {
    const visible = kinds.filter((kind) => state.shown.get(kind.id));
    const curves = visible.flatMap((kind) => kind.curves);
    const lines = visible.flatMap((kind) => kind.lines ?? []);
    const values = [
      ...curves.flatMap(({ rows }) => rows.flatMap((row) => [row.y, row.low, row.high])),
      ...lines.flatMap(({ corners }) => corners.map((corner) => corner[1])),
      ...also,
    ];
    const points = curves.flatMap(({ rows }) => rows).filter((row) => drawable(row.y, state.logarithmic) && row.title);
    const y = valueAxis(values, { logarithmic: state.logarithmic, label, share, zero: !state.logarithmic && !share });
    const options = {
      width,
      height: Math.round(width < NARROW ? 0.8 * height : width > WIDE ? 1.15 * height : height),
      marginLeft: 54,
      marginRight: 16,
      marginTop: top,
      marginBottom: 40,
      x: layerAxis(profiles, width),
      y,
      marks: [
        ...lines.map(({ corners, style }) => lineMark(state.logarithmic ? corners : bent(corners), style)),
        ...extra(state.logarithmic, visible),
        ...curves.flatMap((curve) => curveMarks(curve, state.logarithmic, width, y.domain[0])),
      ],
    };
    // on paper there are no checkboxes to tell the curves by
    const printed = kinds.length > 1 ? visible.map((kind) => keyEntry(swatch(kind.sample), kind.name)) : [];
    for (const entry of printed) entry.classList.add("printed");
    parts.key.replaceChildren(...key, ...printed);
    return drawing(figure.dataset.label, options, points);
  };
  const again = () => redraw(figure);
  if (toggle) {
    const choices = [[true, "log"], [false, "linear"]];
    const choose = (value) => ((state.logarithmic = value), again());
    parts.controls.append(segmented("Vertical axis", choices, logarithmic, choose));
  }
  for (const kind of kinds) {
    const choose = (value) => (state.shown.set(kind.id, value), again());
    if (kinds.length > 1) parts.controls.append(check(kind.name, kind.shown, swatch(kind.sample), choose));
  }
  register(figure, draw, height);
}

/** A line that is straight in ln D, on a linear axis: an exponential, drawn through many corners. */
function bent(corners, pieces = 24) {
  return corners.slice(1).flatMap(([x1, y1], step) => {
    const [x0, y0] = corners[step];
    return Array.from({ length: pieces + 1 }, (_, piece) => {
      const share = piece / pieces;
      return [x0 + share * (x1 - x0), y0 ** (1 - share) * y1 ** share];
    });
  });
}
