/* Class by class: D of every class at every layer, and the cosines between class means against those of a simplex ETF. */

const CELL_LEAST = 14; // pixels: a name must fit
const CELL_MOST = 34;

/** How high a heat map of so many rows is. */
function heatHeight(rows, width, columns, left) {
  const wide = (width - left - 16) / columns;
  const cell = Math.min(CELL_MOST, Math.max(CELL_LEAST, wide));
  return Math.round(rows * cell + 74);
}

/** The margin that names of this length need, within reason. */
function nameMargin(names, width) {
  const longest = Math.max(...names.map((name) => Array.from(name).length), 1);
  return Math.min(12 + 7 * Math.min(longest, 24), Math.round(0.36 * width));
}

/** Rows of D per class, by class and layer. */
function classRows(profile) {
  const { classes, layers } = profile;
  return classes.shown.flatMap((_, row) =>
    layers.index.map((index, position) => {
      const value = classes.fuzziness[row][position];
      const title = `${short(classes.names[row], 40)}\n${layerTitle(profile, position)}\nD of this class: ${number(value)}\nD of all: ${number(layers.fuzziness[position])}`;
      return { row, position, x: index, y: row, value, title };
    }),
  );
}

function classHeat(figure, profile, rows, width) {
  const { names } = profile.classes;
  const known = rows.filter((row) => drawable(row.value, true));
  const logs = known.map((row) => Math.log(row.value));
  const low = Math.min(...logs);
  const high = Math.max(...logs);
  const left = nameMargin(names, width);
  const letters = Math.floor((left - 12) / 6.6);
  const options = {
    width,
    height: heatHeight(names.length, width, profile.layers.index.length, left),
    marginLeft: left,
    marginRight: 16,
    marginTop: 12,
    marginBottom: 42,
    padding: profile.layers.index.length > 60 || names.length > 30 ? 0 : 0.06,
    x: { type: "band", domain: profile.layers.index, ticks: layerTicks(profile.layers.index, width - left), label: profile.each, labelAnchor: "center", labelArrow: "none", tickFormat: String, tickSize: 0 },
    y: { type: "band", domain: names.map((_, row) => row), tickFormat: (row) => short(names[row], letters), label: null, tickSize: 0 },
    color: { type: "identity" },
    marks: [
      Plot.cell(rows, { x: "x", y: "y", fill: "var(--rule)", fillOpacity: 0.35 }),
      Plot.cell(known, { x: "x", y: "y", fill: (row) => between(HEAT, (Math.log(row.value) - low) / (high - low || 1)) }),
    ],
  };
  partsOf(figure).key.replaceChildren(ramp(HEAT.map(paint), `D ${number(Math.exp(low), 3)}`, `${number(Math.exp(high), 3)} (logarithmic)`));
  return drawing(figure.dataset.label, options, known, "both");
}

/** The same as one small chart of ln D per class, with that of all classes behind it. */
function classMultiples(figure, profile, rows, width) {
  const { names } = profile.classes;
  const columns = Math.max(2, Math.min(5, Math.floor(width / 190), names.length));
  const lines = Math.ceil(names.length / columns);
  const cells = names.map((name, row) => ({ name, fx: row % columns, fy: Math.floor(row / columns) }));
  const known = rows.filter((row) => drawable(row.value, true)).map((row) => ({ ...row, ...cells[row.row], y: row.value }));
  const all = cells.flatMap(({ fx, fy }) => profile.layers.index.map((x, position) => ({ fx, fy, x, y: profile.layers.fuzziness[position] })));
  const drawn = all.filter((row) => drawable(row.y, true));
  const options = {
    width,
    height: 40 + 110 * lines,
    marginLeft: 46,
    marginRight: 8,
    marginTop: 8,
    marginBottom: 40,
    x: { ...layerAxis([profile], width / columns), ticks: layerTicks(profile.layers.index, width / columns + 40) },
    y: { ...valueAxis([...known, ...drawn].map((row) => row.y), { logarithmic: true, label: null }), ticks: logTicks([Math.min(...known.map((row) => row.y)), Math.max(...known.map((row) => row.y))], 3) },
    fx: { axis: null, padding: 0.06 },
    fy: { axis: null, padding: 0.12 },
    style: STYLE,
    ariaLabel: figure.dataset.label,
    marks: [
      Plot.line(drawn, { x: "x", y: "y", fx: "fx", fy: "fy", stroke: "var(--muted)", strokeOpacity: 0.6, strokeDasharray: "3 3" }),
      Plot.line(known, { x: "x", y: "y", fx: "fx", fy: "fy", z: "row", stroke: "var(--train)", strokeWidth: 1.8 }),
      Plot.dot(known, { x: "x", y: "y", fx: "fx", fy: "fy", r: 2.2, fill: "var(--train)" }),
      Plot.text(cells, { fx: "fx", fy: "fy", frameAnchor: "top-right", text: (cell) => short(cell.name, 20), dx: -2, dy: 2, fontWeight: 600, fill: "var(--ink)", stroke: "var(--panel)", strokeWidth: 4 }),
      tipMark(known, width, "both", { fx: "fx", fy: "fy" }),
    ],
  };
  const key = [[{ color: paint("train"), symbol: "circle" }, "D of the class"], [{ color: paint("muted"), dash: "3 3" }, "D of all classes"]];
  partsOf(figure).key.replaceChildren(...key.map(([sample, text]) => keyEntry(swatch(sample), text)));
  const svg = Plot.plot(options);
  asImage(svg);
  return svg;
}

function classFigure(figure, [profile]) {
  const rows = classRows(profile);
  let view = "map";
  const draw = (width) => {
    if (!rows.some((row) => drawable(row.value, true))) return element("p", {}, "No class has a D above zero, which a logarithmic scale needs.");
    return (view === "map" ? classHeat : classMultiples)(figure, profile, rows, width);
  };
  const choose = (value) => ((view = value), redraw(figure));
  partsOf(figure).controls.append(segmented("Drawn as", [["map", "heat map"], ["lines", "one chart per class"]], view, choose));
  register(figure, draw, heatHeight(profile.classes.names.length, 700, profile.layers.index.length, 100));
}

/** A cosine as it is embedded, to three places. */
const cosineText = (value) => (value === null ? MISSING : typeset(value.toFixed(3)));

/** The cosines of one layer, as a full matrix without its diagonal. */
function cosineCells({ names, rows, etf }, at) {
  return rows[at].flatMap((row, lower) =>
    row.flatMap((value, upper) => {
      const one = lower + 1;
      const title = `${short(names[one], 30)} and ${short(names[upper], 30)}\ncosine ${cosineText(value)}, simplex ETF ${cosineText(etf)}`;
      return [{ x: upper, y: one, value, title }, { x: one, y: upper, value, title }];
    }),
  );
}

function cosinesFigure(figure, [profile]) {
  const { cosines } = profile;
  const { names, etf } = cosines;
  const parts = partsOf(figure);
  // one scale for all layers; by square roots, so that small differences from the ETF show beside large ones
  const all = cosines.rows.flat(2).filter((value) => drawable(value));
  const reach = Math.max(0.05, ...all.map((value) => Math.abs(value - etf)));
  const color = (value) => between(DIVERGING, 0.5 + 0.5 * Math.sign(value - etf) * Math.sqrt(Math.abs(value - etf) / reach));
  const [low, high] = [Math.max(-1, etf - reach), Math.min(1, etf + reach)];
  const steps = Array.from({ length: 21 }, (_, step) => color(low + (step / 20) * (high - low)));
  let at = cosines.layers.length - 1;
  const draw = (width) => {
    const left = nameMargin(names, width);
    const letters = Math.floor((left - 12) / 6.6);
    const side = Math.max(160, Math.min(width - left - 16, 40 * names.length, 560));
    const cells = cosineCells(cosines, at);
    const known = cells.filter((cell) => drawable(cell.value));
    const named = (width - left) / names.length > 15;
    const label = named ? (row) => short(names[row], letters) : () => "";
    const below = named ? Math.round(0.7 * left) + 8 : 12; // names aslant
    const domain = names.map((_, row) => row);
    const options = {
      width: Math.min(width, left + side + 16),
      height: side + 12 + below,
      marginLeft: left,
      marginRight: 16,
      marginTop: 12,
      marginBottom: below,
      padding: names.length > 30 ? 0 : 0.05,
      x: { type: "band", domain, label: null, tickSize: 0, tickFormat: label, tickRotate: -40 },
      y: { type: "band", domain, label: null, tickSize: 0, tickFormat: label },
      color: { type: "identity" },
      marks: [
        // a class and itself: empty, where a cosine as in the ETF is a pale color
        Plot.cell(domain, { x: (row) => row, y: (row) => row, fill: "var(--paper)", stroke: "var(--rule)", inset: 0.5 }),
        Plot.cell(known, { x: "x", y: "y", fill: (cell) => color(cell.value) }),
      ],
    };
    return drawing(`${figure.dataset.label} ${layerTitle(profile, cosines.layers[at])}.`, options, known, "both");
  };
  if (cosines.layers.length > 1) {
    const describe = (position) => layerTitle(profile, cosines.layers[position]);
    const range = slider("Layer", cosines.layers.length, at, describe, (position) => ((at = position), redraw(figure)));
    parts.controls.append(range.node, playButton(range, "layers"));
  }
  parts.key.replaceChildren(
    ramp(steps, `cosine ${number(low, 2)}`, number(high, 2)),
    keyEntry(swatch({ color: paint("zero"), line: false, block: true }), `as in a simplex ETF, ${cosineText(etf)}`),
  );
  register(figure, draw, 400);
}
