/* Toggles, sliders, play buttons and keys: plain form elements, so that the keyboard works as everywhere. */

const STEP_TIME = 900; // milliseconds that a layer is shown while playing
let names = 0;

/** A row of buttons of which one is pressed; `choose(value)` is told which. */
function segmented(label, options, chosen, choose) {
  const group = element("div", { class: "segmented", role: "group", "aria-label": label });
  for (const [value, text] of options) {
    const button = element("button", { type: "button", "aria-pressed": String(value === chosen) }, text);
    button.addEventListener("click", () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
      choose(value);
    });
    group.append(button);
  }
  return group;
}

/** A checkbox with a sample of what it shows and hides. */
function check(text, checked, swatch, choose) {
  const input = element("input", { type: "checkbox" });
  input.checked = checked;
  input.addEventListener("change", () => choose(input.checked));
  return element("label", { class: "check" }, input, ...(swatch ? [swatch] : []), text);
}

/** A labeled range over positions 0 … count − 1, whose output says what is shown; `set` moves it from outside. */
function slider(label, count, start, describe, choose) {
  const id = `equisep-range-${names++}`;
  const input = element("input", { type: "range", id, min: 0, max: count - 1, step: 1 });
  const output = element("output", { for: id });
  const show = () => {
    const text = describe(Number(input.value));
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  const set = (position) => {
    input.value = String(position);
    show();
    choose(position);
  };
  input.value = String(start);
  show();
  input.addEventListener("input", () => set(Number(input.value)));
  const node = element("div", { class: "slider" }, element("label", { for: id }, label), input, output);
  return { node, input, set };
}

/** A button that walks a slider to its end, step by step, and can be stopped; it starts over from the end. */
function playButton(range, what) {
  const button = element("button", { type: "button", class: "play" }, "▶ Play");
  button.setAttribute("aria-label", `Play through the ${what}`);
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.firstChild.data = "▶ Play";
    button.setAttribute("aria-label", `Play through the ${what}`);
  };
  const step = () => {
    const next = Number(range.input.value) + 1;
    if (next > Number(range.input.max)) stop();
    else range.set(next);
  };
  button.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (range.input.value === range.input.max) range.set(0);
    button.firstChild.data = "⏸ Pause";
    button.setAttribute("aria-label", `Pause the ${what}`);
    timer = setInterval(step, STEP_TIME);
    return undefined;
  });
  range.input.addEventListener("pointerdown", stop);
  return button;
}

const SHAPES = {
  circle: "M0,-4A4,4,0,1,1,0,4A4,4,0,1,1,0,-4Z",
  triangle: "M0,-5L4.5,3.5H-4.5Z",
  square: "M-3.5,-3.5H3.5V3.5H-3.5Z",
  diamond: "M0,-5L4,0L0,5L-4,0Z",
  star: "M0,-5.5L1.5,-1.7L5.5,-1.5L2.4,1L3.4,5L0,2.8L-3.4,5L-2.4,1L-5.5,-1.5L-1.5,-1.7Z",
  cross: "M-1.5,-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5Z",
};

/** A small drawing of a line and a point as a curve has them. */
function swatch({ color, symbol = null, dash = null, line = true, hollow = false, block = false }) {
  const space = "http://www.w3.org/2000/svg";
  const node = document.createElementNS(space, "svg");
  const wide = line ? 28 : 14;
  for (const [name, value] of Object.entries({ class: "sample", width: wide, height: 14, "aria-hidden": "true" }))
    node.setAttribute(name, value);
  node.setAttribute("viewBox", `${-wide / 2} -7 ${wide} 14`);
  const add = (tag, attributes) => {
    const part = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, value);
    node.append(part);
  };
  if (line) {
    const style = `stroke:${color};stroke-width:2`;
    add("line", { x1: -14, x2: 14, y1: 0, y2: 0, style, ...(dash ? { "stroke-dasharray": dash } : {}) });
  }
  if (block) add("rect", { x: -6, y: -6, width: 12, height: 12, style: `fill:${color};stroke:var(--rule)` });
  if (symbol) add("path", { d: SHAPES[symbol], style: `fill:${hollow ? "var(--panel)" : color};stroke:${color};stroke-width:1.5` });
  return node;
}

/** One entry of a key that is not a button. */
function keyEntry(sample, text) {
  return element("span", { class: "entry" }, sample, text);
}

/** A strip of colors with what its two ends stand for. */
function ramp(colors, low, high) {
  const strip = element("span", { class: "ramp", "aria-hidden": "true" });
  Object.assign(strip.style, { display: "inline-block", width: "7.5rem", height: "0.8rem", border: "1px solid var(--rule)" });
  strip.style.background = `linear-gradient(to right, ${colors.join(", ")})`;
  return element("span", { class: "entry" }, low, strip, high);
}
