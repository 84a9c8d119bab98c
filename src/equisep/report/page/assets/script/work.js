/* Which share of the whole fall of ln D each layer takes. */

const EQUAL_DASH = "5 4";

/** Whether an interval lies wholly on one side of equal shares. */
function besideEqual(row, equal) {
  if (equal === null || row.low === null || row.high === null) return "untold";
  if (row.low > equal) return "more";
  return row.high < equal ? "less" : "even";
}

/** The bars of every profile, side by side at each layer. */
function workRows(profiles) {
  const wide = 0.8 / profiles.length;
  return profiles.flatMap((profile, series) =>
    layerRows(profile, ["share", "share_low", "share_high"])
      .filter((row) => row.share !== null)
      .map((row) => {
        const left = row.index - 0.4 + series * wide;
        const bar = { series, x1: left, x2: left + wide, x: left + wide / 2, y: row.share, low: row.share_low, high: row.share_high };
        const whose = data.several ? `${short(profile.label, 40)}\n` : "";
        const equal = profile.share_each === null ? "" : `\nequal shares: ${signedPercent(profile.share_each)}`;
        const text = withInterval(row.share, row.share_low, row.share_high, signedPercent);
        return { ...bar, side: besideEqual(bar, profile.share_each), title: `${whose}${layerTitle(profile, row.position)}\n${text} of the work${equal}` };
      }),
  );
}

function workFigure(figure, profiles) {
  const rows = workRows(profiles);
  const equal = profiles.map((profile, series) => ({ y: profile.share_each, series })).filter(({ y }) => y !== null);
  const lineColor = ({ series }) => (data.several ? seriesPaint(series) : "var(--ink)");
  const pale = "color-mix(in oklab, var(--train) 45%, var(--panel))";
  const fills = { more: paint("train"), even: pale, untold: pale, less: paint("test") };
  const fill = (row) => (data.several ? seriesPaint(row.series) : fills[row.side]);
  const values = [...rows.flatMap((row) => [row.y, row.low, row.high]), ...equal.map(({ y }) => y)];
  const whiskers = rows.filter((row) => row.low !== null && row.high !== null);
  const gap = (width) => (width / rows.length > 8 ? 0.5 : 0);
  const draw = (width) =>
    drawing(
      figure.dataset.label,
      {
        width,
        height: width < NARROW ? 250 : 300,
        marginLeft: 54,
        marginRight: 16,
        marginTop: 28,
        marginBottom: 40,
        x: barAxis(profiles, rows, width),
        y: valueAxis(values, { logarithmic: false, label: "share of the work", share: true, zero: true }),
        color: { type: "identity" },
        marks: [
          Plot.rect(rows, { x1: "x1", x2: "x2", y1: 0, y2: "y", fill, insetLeft: gap(width), insetRight: gap(width) }),
          Plot.ruleX(whiskers, { x: "x", y1: "low", y2: "high", stroke: "var(--ink)", strokeWidth: rows.length > 80 ? 0.6 : 1.3 }),
          Plot.ruleY(equal, { y: "y", stroke: lineColor, strokeDasharray: EQUAL_DASH, strokeOpacity: 0.8 }),
          Plot.ruleY([0], { stroke: "var(--ink)" }),
        ],
      },
      rows,
    );
  const sides = [["more", "more than an equal share"], ["even", "an equal share, as far as the interval tells"], ["less", "less than an equal share"], ["untold", "share, without an interval"]];
  const shown = sides.filter(([side]) => rows.some((row) => row.side === side));
  const own = data.several ? [] : shown.map(([side, text]) => keyEntry(swatch({ color: fills[side], line: false, block: true }), text));
  const line = equal.length ? [keyEntry(swatch({ color: "var(--ink)", dash: EQUAL_DASH }), "equal shares")] : [];
  partsOf(figure).key.replaceChildren(...seriesKey(profiles), ...own, ...line);
  register(figure, draw, 300);
}

/** The axis of the layers that have a bar, none of which is cut off. */
function barAxis(profiles, rows, width) {
  const axis = layerAxis(profiles, width);
  if (rows.length === 0) return axis;
  const domain = [Math.min(...rows.map((row) => row.x1)) - 0.1, Math.max(...rows.map((row) => row.x2)) + 0.1];
  return { ...axis, domain, ticks: axis.ticks.filter((tick) => tick > domain[0]), label: axis.label.replace(" (0 = input)", "") };
}
