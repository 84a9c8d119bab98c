/* The embedded numbers, how they are written, and elements made without markup: names are text, whatever they contain. */

const MISSING = "–";
const data = JSON.parse(document.getElementById("equisep-data").textContent);

/** A number as text, with the sign that is as wide as a digit. */
const typeset = (text) => text.replaceAll("-", "−");

/** A number to some significant digits, as `equisep.results.wording.number` writes it. */
function number(value, digits = 4) {
  if (value === null || value === undefined) return MISSING;
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(Number(value.toExponential(digits - 1)))));
  if (size >= -4 && size < Math.max(digits, 6)) return typeset(value.toFixed(Math.max(0, digits - 1 - size)));
  const [head, power] = value.toExponential(Math.min(digits, 3) - 1).split("e");
  return typeset(`${head}e${power[0]}${power.slice(1).padStart(2, "0")}`);
}

/** A share in percent with one digit, never rounded to 100 or 0 when it is not. */
function percent(share) {
  if (share === null || share === undefined) return MISSING;
  const held = share === 0 || share === 1 ? share : Math.min(Math.max(share, 0.0005), 0.9994);
  return `${(100 * held).toFixed(1)} %`;
}

/** A part of the work in percent: it can be negative, or more than all. */
function signedPercent(share) {
  return share === null || share === undefined ? MISSING : `${typeset((100 * share).toFixed(1))} %`;
}

/** A value with its interval, where it has one. */
function withInterval(value, low, high, write = number) {
  const known = low !== null && low !== undefined && high !== null && high !== undefined;
  return known ? `${write(value)} [${write(low)}, ${write(high)}]` : write(value);
}

/** A name short enough for an axis or a key. */
function short(name, most = 24) {
  const letters = Array.from(name);
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name;
}

/** Whether a number exists, and where the axis is logarithmic can be drawn on it. */
function drawable(value, logarithmic = false) {
  return value !== null && value !== undefined && Number.isFinite(value) && (!logarithmic || value > 0);
}

/** An element with attributes and children; text children stay text. */
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** Layers as rows: { position, index, name } with the named columns of the profile. */
function layerRows(profile, columns) {
  return profile.layers.index.map((index, position) => {
    const row = { position, index, name: profile.layers.name[position] };
    for (const column of columns) row[column] = profile.layers[column]?.[position] ?? null;
    return row;
  });
}

/** What a layer is called where there is room: its number and its name. */
function layerTitle(profile, position) {
  const { index, name } = profile.layers;
  return `${profile.each} ${index[position]} · ${short(name[position], 28)}`;
}
