/* The law of equi-separation: ln D against layers, the fitted line, chance, correction, other readings. */

const D_LABEL = "D, the overlap of the classes";
const VERDICT_DASH = { law: null, between: "10 4 2 4", "no law": "2 4", undetermined: "2 4" };
const D_CURVES = [
  { id: "train", column: "fuzziness", interval: "fuzziness", name: "training data", color: "train", symbol: "circle" },
  { id: "test", column: "fuzziness_test", name: "test data", color: "test", symbol: "triangle", dash: "6 4", hollow: true, joined: true },
  { id: "chance", column: "null", name: "chance level (shuffled labels)", color: "chance", dash: "2 4", joined: true },
  { id: "corrected", column: "corrected", interval: "corrected", name: "training, corrected for the number of samples", color: "corrected", symbol: "diamond", aside: 0.12 },
  { id: "corrected_test", column: "corrected_test", interval: "corrected_test", name: "test, corrected", color: "corrected", symbol: "diamond", hollow: true, dash: "2 3", joined: true, aside: 0.12 },
];

/** What is said where a curve is pointed at. */
function lawTitle(profile, position, name, text, share = null) {
  const work = share === null ? "" : `\n${signedPercent(share)} of the work`;
  const whose = data.several ? `${short(profile.label, 40)}\n` : "";
  return `${whose}${layerTitle(profile, position)}\nD, ${name}: ${text}${work}`;
}

/** One column of D as rows to draw, a little to the side where it would cover another. */
function lawRows(profile, { column, interval, name, aside = 0 }) {
  return profile.layers.index.map((index, position) => {
    const x = index + aside;
    const y = profile.layers[column]?.[position] ?? null;
    const low = interval ? (profile.layers[`${interval}_low`]?.[position] ?? null) : null;
    const high = interval ? (profile.layers[`${interval}_high`]?.[position] ?? null) : null;
    const share = column === "fuzziness" ? (profile.layers.share?.[position] ?? null) : null;
    return { x, y, low, high, title: lawTitle(profile, position, name, withInterval(y, low, high), share) };
  });
}

/** The fitted line of training data, dashed by how well it fits. */
function fitKind(profiles) {
  const lines = profiles.flatMap((profile, position) => {
    const law = profile.laws.train;
    if (!law?.line) return [];
    const stroke = data.several ? seriesPaint(position) : paint("fit");
    return [{ corners: law.line, style: { stroke, strokeWidth: 1.6, strokeDasharray: VERDICT_DASH[law.verdict], strokeOpacity: 0.9 } }];
  });
  if (lines.length === 0) return [];
  const law = profiles[0].laws.train;
  const name = data.several ? "fitted lines" : `fitted line, ×${number(law.rho, 3)} per ${profiles[0].each}`;
  const sample = { color: data.several ? "var(--ink)" : paint("fit"), dash: data.several ? null : VERDICT_DASH[law.verdict] };
  return [{ id: "fit", name, shown: true, sample, curves: [], lines }];
}

/** The line with a kink, where two slopes are more than chance. */
function kinkKind(profiles) {
  const bends = profiles.filter((profile) => profile.laws.train?.kink?.clear);
  if (bends.length === 0) return [];
  const style = { stroke: paint("fit"), strokeWidth: 1.6, strokeDasharray: "10 3", strokeOpacity: 0.9 };
  const lines = bends.map((profile) => ({ corners: profile.laws.train.kink.line, style }));
  const { at } = bends[0].laws.train.kink;
  const name = data.several ? "lines with a kink" : `line with a kink at ${bends[0].each} ${at}`;
  return [{ id: "kink", name, shown: !data.several, sample: { color: paint("fit"), dash: "10 3" }, curves: [], lines }];
}

/** Other readings of the same network: statistics of BatchNorm taken otherwise. */
function readingKinds(profiles) {
  if (data.several) return [];
  const [profile] = profiles;
  return profile.readings.map((reading, position) => {
    const name = `reading “${reading.name}”`;
    const color = seriesPaint(position + 3); // the first three are those of training, test and corrected D
    const rows = profile.layers.index.map((x, step) => {
      const y = reading.fuzziness[step] ?? null;
      return { x, y, title: lawTitle(profile, step, `training data, ${name}`, number(y)) };
    });
    const curve = { rows, color, symbol: "square", hollow: true, joined: true, dash: "8 3 2 3" };
    return { id: `reading-${position}`, name, shown: false, sample: { ...curve }, curves: [curve] };
  });
}

/** What is drawn before anybody chooses: of several networks the training data; what corrects them, where they are a sample. */
function shownFirst({ id }, profiles) {
  if (data.several) return id === "train";
  return id.startsWith("corrected") ? profiles[0].whole === false : true;
}

function lawFigure(figure, profiles) {
  const columns = D_CURVES.flatMap((kind) => {
    const known = profiles
      .map((profile, position) => ({ rows: lawRows(profile, kind), position }))
      .filter(({ rows }) => rows.some((row) => drawable(row.y)));
    if (known.length === 0) return [];
    const style = { ...kind, color: paint(kind.color) };
    const curves = known.map(({ rows, position }) => {
      const own = data.several ? { color: seriesPaint(position), symbol: kind.symbol && seriesSymbol(position) } : {};
      const alone = !profiles[position].laws.train?.line; // no line to lie on: the points are joined instead
      return { ...style, ...own, rows, joined: kind.joined || (kind.id === "train" && alone) };
    });
    const sample = { ...style, color: data.several ? "var(--ink)" : style.color, line: Boolean(kind.joined) };
    return [{ id: kind.id, name: kind.name, shown: shownFirst(kind, profiles), sample, curves }];
  });
  const kinds = [...columns, ...fitKind(profiles), ...kinkKind(profiles), ...readingKinds(profiles)];
  curvesFigure(figure, { kinds, profiles, label: D_LABEL, toggle: true, height: 420, key: seriesKey(profiles) });
}

/** Which color and symbol is which profile, where several are compared. */
function seriesKey(profiles) {
  if (!data.several) return [];
  return profiles.map((profile, position) =>
    keyEntry(swatch({ color: seriesPaint(position), symbol: seriesSymbol(position) }), short(profile.label, 60)),
  );
}
