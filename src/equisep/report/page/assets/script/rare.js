/* Rare classes: the cosines that were measured beside those that the Layer-Peeled Model predicts. */

const BAR_PAINT = { measured: "train", predicted: "corrected", reference: "chance" };

function rareFigure(figure) {
  const bars = JSON.parse(figure.dataset.bars).map((bar, row) => ({ ...bar, y: row, x: bar.value, title: `${bar.label}\n${number(bar.value)}` }));
  const known = bars.filter((bar) => drawable(bar.value));
  const kinds = [...new Set(bars.map((bar) => bar.kind))];
  const draw = (width) => {
    const left = Math.min(12 + 7 * Math.max(...bars.map((bar) => bar.label.length)), Math.round(0.5 * width));
    const letters = Math.floor((left - 12) / 6.4);
    const ends = [Math.min(0, ...known.map((bar) => bar.value)), Math.max(0, ...known.map((bar) => bar.value))];
    const pad = (50 / (width - left - 96)) * (ends[1] - ends[0] || 1); // for the number at the end of a bar
    const options = {
      width,
      height: 60 + 34 * bars.length,
      marginLeft: left,
      marginRight: 16,
      marginTop: 12,
      marginBottom: 40,
      x: { domain: [ends[0] < 0 ? ends[0] - pad : 0, ends[1] > 0 ? ends[1] + pad : 0], label: "cosine", labelAnchor: "center", labelArrow: "none", grid: true, ticks: Math.max(3, Math.floor(width / 110)) },
      y: { type: "band", domain: bars.map((bar) => bar.y), tickFormat: (row) => short(bars[row].label, letters), label: null, tickSize: 0, padding: 0.25 },
      color: { type: "identity" },
      marks: [
        Plot.barX(known, { x: "value", y: "y", fill: (bar) => paint(BAR_PAINT[bar.kind]) }),
        Plot.ruleX([0], { stroke: "var(--ink)" }),
        Plot.text(known, { x: "value", y: "y", text: (bar) => number(bar.value, 3), textAnchor: "start", dx: 4, filter: (bar) => bar.value >= 0 }),
        Plot.text(known, { x: "value", y: "y", text: (bar) => number(bar.value, 3), textAnchor: "end", dx: -4, filter: (bar) => bar.value < 0 }),
      ],
    };
    return drawing(figure.dataset.label, options, known, "both");
  };
  partsOf(figure).key.replaceChildren(...kinds.map((kind) => keyEntry(swatch({ color: paint(BAR_PAINT[kind]), line: false, block: true }), kind)));
  register(figure, draw, 60 + 34 * bars.length);
}
