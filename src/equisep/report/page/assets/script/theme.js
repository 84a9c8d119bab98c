/* Colors are those of the style sheet, by name, so that light, dark and print need no second drawing. */

const SYMBOLS = ["circle", "triangle", "square", "diamond", "star", "cross"];
const HEAT = ["heat-0", "heat-1", "heat-2", "heat-3", "heat-4"];
const DIVERGING = ["cool-2", "cool-1", "zero", "warm-1", "warm-2"];
const CLASS_COLORS = 10;
const SERIES_COLORS = 6;

const paint = (name) => `var(--${name})`;
const seriesPaint = (position) => paint(`series-${position % SERIES_COLORS}`);
const classPaint = (position) => paint(`class-${position % CLASS_COLORS}`);
/** The colors repeat after ten classes; a symbol tells the repeats apart. */
const classSymbol = (position) => SYMBOLS[Math.floor(position / CLASS_COLORS) % SYMBOLS.length];
/** The next round of colors comes with other symbols. */
const seriesSymbol = (position) => SYMBOLS[(position + Math.floor(position / SERIES_COLORS)) % SYMBOLS.length];

/** A color between those named, at a share of the way from the first to the last. */
function between(names, share) {
  const way = Math.min(Math.max(share, 0), 1) * (names.length - 1);
  const step = Math.min(Math.floor(way), names.length - 2);
  const rest = Math.round(100 * (way - step));
  return `color-mix(in oklab, ${paint(names[step + 1])} ${rest}%, ${paint(names[step])})`;
}

/** A color of the style sheet as the canvas needs it. */
function computedColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "gray";
}

const stillness = matchMedia("(prefers-reduced-motion: reduce)");
const darkness = matchMedia("(prefers-color-scheme: dark)");
