/* Other numbers against layers: nearest centers, CDNV, residuals around the line. */

const SIDES = [
  { id: "train", name: "training data", color: "train", symbol: "circle", joined: true },
  { id: "test", name: "test data", color: "test", symbol: "triangle", dash: "6 4", hollow: true, joined: true },
];

const FLAG_LINE = 16; // pixels from one line of words above a chart to the next

/** One column per kind, for every profile that has it. */
function columnKinds(profiles, columns, what, write) {
  return columns.flatMap(({ column, ...kind }) => {
    const curves = profiles.flatMap((profile, series) => {
      const rows = profile.layers.index.map((x, position) => {
        const y = profile.layers[column]?.[position] ?? null;
        const whose = data.several ? `${short(profile.label, 40)}\n` : "";
        return { x, y, title: `${whose}${layerTitle(profile, position)}\n${what}, ${kind.name}: ${write(y)}` };
      });
      const own = data.several ? { color: seriesPaint(series), symbol: kind.symbol && seriesSymbol(series) } : { color: paint(kind.color) };
      return rows.some((row) => drawable(row.y)) ? [{ ...kind, ...own, rows }] : [];
    });
    const sample = { ...kind, color: data.several ? "var(--ink)" : paint(kind.color) };
    return curves.length ? [{ id: kind.id, name: kind.name, shown: true, sample, curves }] : [];
  });
}

/** The network's own accuracy as a level line, and flags where a depth is reached. */
function centerMarks(profiles) {
  return profiles.flatMap((profile, series) => {
    const color = (name) => (data.several ? seriesPaint(series) : paint(name));
    const levels = [["accuracy_train", "train", null], ["accuracy_test", "test", "6 4"]]
      .filter(([field]) => drawable(profile[field]))
      .map(([field, name, dash]) => Plot.ruleY([profile[field]], { stroke: color(name), strokeOpacity: 0.55, strokeWidth: 1, strokeDasharray: dash ?? "1 3" }));
    if (data.several) return levels;
    const flags = [];
    if (profile.effective_depth !== null) flags.push({ x: profile.effective_depth, text: "effective depth" });
    if (profile.network_depth !== null) flags.push({ x: profile.network_depth, text: "as good as the network" });
    return [...levels, ...flagPlaces(flags, profile.layers.index).flatMap(flagMarks)];
  });
}

/** The flags with the side and the line of their words: no words run through the upright line of the other flag. */
function flagPlaces(flags, indices) {
  const [low, high] = [indices[0], indices.at(-1)];
  const [first, second] = [...flags].sort((one, other) => one.x - other.x);
  if (!second) return flags.map((flag) => ({ ...flag, line: 1, left: flag.x > (low + high) / 2 }));
  if (second.x - first.x > (high - low) / 2) return [{ ...first, line: 1, left: false }, { ...second, line: 2, left: true }];
  const left = first.x + second.x > low + high;
  // an upright line ends at its own words, so those that reach beyond the other one stand higher
  return [{ ...first, line: left ? 1 : 2, left }, { ...second, line: left ? 2 : 1, left }];
}

/** A vertical mark with its words, on the side where there is room. */
function flagMarks({ x, text, line, left }) {
  const side = { textAnchor: left ? "end" : "start", dx: left ? -4 : 4, dy: -FLAG_LINE * line };
  return [
    Plot.ruleX([x], { stroke: "var(--muted)", strokeDasharray: "3 3", insetTop: -FLAG_LINE * line }),
    Plot.text([text], { x: () => x, frameAnchor: "top", ...side, fill: "var(--ink)", stroke: "var(--panel)", strokeWidth: 4, fontSize: 12 }),
  ];
}

function centersFigure(figure, profiles) {
  const columns = SIDES.map((side) => ({ ...side, column: `ncc_${side.id}` }));
  const kinds = columnKinds(profiles, columns, "nearest to their own class mean", percent);
  const own = profiles.some((profile) => drawable(profile.accuracy_train) || drawable(profile.accuracy_test));
  const level = own ? [keyEntry(swatch({ color: "var(--muted)", dash: "1 3" }), "level lines: the network’s own accuracy")] : [];
  const extra = () => centerMarks(profiles);
  const label = "samples nearest to their own class mean";
  const also = profiles.flatMap((profile) => [profile.accuracy_train, profile.accuracy_test]);
  curvesFigure(figure, { kinds, profiles, label, logarithmic: false, share: true, height: 360, top: 58, extra, also, key: [...seriesKey(profiles), ...level] });
}

function cdnvFigure(figure, profiles) {
  const directional = { id: "directional", name: "along the lines between class means", color: "corrected", symbol: "diamond", joined: true, dash: "8 3 2 3", column: "cdnv_directional" };
  const columns = [{ ...SIDES[0], column: "cdnv" }, { ...SIDES[1], column: "cdnv_test" }, directional];
  const kinds = columnKinds(profiles, columns, "CDNV", number);
  curvesFigure(figure, { kinds, profiles, label: "CDNV", toggle: true, height: 320, key: seriesKey(profiles) });
}

/** How far ln D lies from the line at each layer. */
function residualsFigure(figure, profiles) {
  const rows = profiles.flatMap((profile, series) =>
    profile.layers.index.map((x, position) => {
      const y = profile.laws.train?.residuals?.[position] ?? null;
      const whose = data.several ? `${short(profile.label, 40)}\n` : "";
      const factor = y === null ? "" : `\nD is ×${number(Math.exp(y), 3)} of the line`;
      return { series, x: x + (series - (profiles.length - 1) / 2) * 0.12, y, title: `${whose}${layerTitle(profile, position)}\nln D less the line: ${number(y)}${factor}` };
    }),
  );
  const known = rows.filter((row) => drawable(row.y));
  const color = (row) => (data.several ? seriesPaint(row.series) : paint("train"));
  const draw = (width) =>
    drawing(
      figure.dataset.label,
      {
        width,
        height: 220,
        marginLeft: 54,
        marginRight: 16,
        marginTop: 28,
        marginBottom: 40,
        x: layerAxis(profiles, width),
        y: valueAxis(known.map((row) => row.y), { logarithmic: false, label: "ln D less the line", zero: true }),
        color: { type: "identity" },
        symbol: { type: "identity" },
        marks: [
          Plot.ruleY([0], { stroke: "var(--fit)", strokeWidth: 1.5 }),
          Plot.ruleX(known, { x: "x", y1: 0, y2: "y", stroke: color, strokeWidth: 1.2 }),
          Plot.dot(known, { x: "x", y: "y", r: Math.min(Math.max(width / known.length / 3.5, 1.8), 4), fill: color, stroke: color }),
        ],
      },
      known,
    );
  partsOf(figure).key.replaceChildren(...seriesKey(profiles));
  register(figure, draw, 220);
}
