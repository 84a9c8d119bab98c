/* How it came about: the law against epochs, and D of all layers, epoch by epoch. */

const PANELS = [
  { id: "rho", label: "ρ, the factor per layer", curves: [{ column: "rho", name: "ρ", color: "train", symbol: "circle" }] },
  { id: "r", label: "r, how straight", curves: [{ column: "r", name: "r", color: "train", symbol: "circle" }] },
  {
    id: "accuracy",
    label: "accuracy",
    share: true,
    curves: [
      { column: "accuracy_train", name: "the network, training data", color: "train", symbol: "circle" },
      { column: "accuracy_test", name: "the network, test data", color: "test", symbol: "triangle", dash: "6 4", hollow: true },
      { column: "ncc_train", name: "nearest centers of the last layer, training data", color: "corrected", symbol: "diamond", dash: "2 3" },
      { column: "ncc_test", name: "nearest centers of the last layer, test data", color: "chance", symbol: "square", dash: "8 3 2 3", hollow: true },
    ],
  },
];

/** Vertical marks where something emerged, in words of which none covers another. */
function emergenceMarks(history, words) {
  const marks = history.emerged.filter(({ at }) => at !== null);
  const middle = (history.numbers[0] + history.numbers.at(-1)) / 2;
  const settled = history.settled === null ? [] : [{ what: "settled", at: history.settled }];
  return [...marks, ...settled].flatMap(({ what, at }, line) => {
    const rule = Plot.ruleX([at], { stroke: "var(--muted)", strokeDasharray: "3 3" });
    if (!words) return [rule];
    const side = at > middle ? { textAnchor: "end", dx: -5 } : { textAnchor: "start", dx: 5 };
    const text = Plot.text([what], { x: () => at, frameAnchor: "top", dy: 14 * line, ...side, fill: "var(--ink)", stroke: "var(--panel)", strokeWidth: 4 });
    return [rule, text];
  });
}

/** One panel of the course of training. */
function epochPanel(figure, history, { label, share, curves }, width, first) {
  const write = share ? percent : number;
  const drawn = curves.map((curve) => ({
    ...curve,
    color: paint(curve.color),
    joined: true,
    rows: history.numbers.map((x, position) => {
      const y = history[curve.column]?.[position] ?? null;
      return { x, y, title: `${history.unit} ${x}\n${curve.name}: ${write(y)}` };
    }),
  }));
  const points = drawn.flatMap(({ rows }) => rows).filter((row) => drawable(row.y));
  if (points.length === 0) return null;
  const options = {
    width,
    height: first ? 210 : 190,
    marginLeft: 58,
    marginRight: 16,
    marginTop: 28,
    marginBottom: 38,
    x: { label: history.unit, labelAnchor: "center", labelArrow: "none", tickFormat: tickText, ticks: Math.max(3, Math.floor(width / 90)) },
    y: valueAxis(points.map((row) => row.y), { logarithmic: false, label, share }),
    marks: [...emergenceMarks(history, first), ...drawn.flatMap((curve) => curveMarks(curve, false, width))],
  };
  return drawing(`${figure.dataset.label} ${label}.`, options, points);
}

function epochsFigure(figure) {
  const { history } = data;
  const known = (panel) => panel.curves.some(({ column }) => history[column]?.some((value) => drawable(value)));
  const panels = PANELS.filter(known);
  const draw = (width) => {
    const nodes = panels.map((panel, position) => epochPanel(figure, history, panel, width, position === 0));
    return element("div", { class: "panels" }, ...nodes.filter(Boolean));
  };
  const last = panels.find((panel) => panel.id === "accuracy");
  const entries = (last?.curves ?? []).filter(({ column }) => history[column]?.some((value) => drawable(value)));
  partsOf(figure).key.replaceChildren(
    ...entries.map(({ name, color, ...style }) => keyEntry(swatch({ ...style, color: paint(color) }), name)),
  );
  register(figure, draw, 200 * panels.length);
}

function lawEpochsFigure(figure) {
  const { history } = data;
  const parts = partsOf(figure);
  const count = history.numbers.length;
  const state = { at: count - 1, logarithmic: true };
  const profile = { each: data.profiles[0].each, layers: { index: history.index, name: history.name } };
  const share = (reading) => (count > 1 ? reading / (count - 1) : 1);
  const every = Math.ceil(count / 60); // faint lines; the slider has them all
  const rowsOf = (reading) =>
    history.index.map((x, position) => {
      const y = history.fuzziness[reading][position];
      return { x, y, title: `${history.unit} ${history.numbers[reading]}\n${layerTitle(profile, position)}\nD, training data: ${number(y)}` };
    });
  const all = history.fuzziness.flat();
  const draw = (width) => {
    const { at, logarithmic } = state;
    const faint = history.numbers.flatMap((_, reading) => {
      if (reading % every !== 0 || reading === at) return [];
      return curveMarks({ rows: rowsOf(reading), color: between(HEAT, 0.15 + 0.85 * share(reading)), joined: true, width: 1, opacity: 0.7 }, logarithmic, width);
    });
    const fit = history.line[at];
    const rows = rowsOf(at);
    const options = {
      width,
      height: width < NARROW ? 300 : 380,
      marginLeft: 54,
      marginRight: 16,
      marginTop: 28,
      marginBottom: 40,
      x: layerAxis([profile], width),
      y: valueAxis(all, { logarithmic, label: D_LABEL, zero: !logarithmic }),
      marks: [
        ...faint,
        ...(fit ? [lineMark(logarithmic ? fit : bent(fit), { stroke: "var(--fit)", strokeWidth: 1.6 })] : []),
        ...curveMarks({ rows, color: paint("ink"), symbol: "circle", joined: !fit, width: 2 }, logarithmic, width),
      ],
    };
    const points = rows.filter((row) => drawable(row.y, logarithmic));
    return drawing(`${figure.dataset.label} ${history.unit} ${history.numbers[at]}.`, options, points);
  };
  parts.controls.append(segmented("Vertical axis", [[true, "log"], [false, "linear"]], true, (value) => ((state.logarithmic = value), redraw(figure))));
  if (count > 1) {
    const describe = (position) => `${history.unit} ${history.numbers[position]} · r ${number(history.r[position])}`;
    const range = slider(history.unit === "step" ? "Step" : "Epoch", count, state.at, describe, (position) => ((state.at = position), redraw(figure)));
    parts.controls.append(range.node, playButton(range, `${history.unit}s`));
  }
  parts.key.replaceChildren(ramp(HEAT.map(paint), `${history.unit} ${history.numbers[0]}`, `${history.unit} ${history.numbers.at(-1)}`), keyEntry(swatch({ color: paint("ink"), symbol: "circle", line: false }), "the one chosen"));
  register(figure, draw, 380);
}
