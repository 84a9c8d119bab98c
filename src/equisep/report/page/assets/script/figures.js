/* When a figure is drawn: as it comes near the window, before printing, and again when its width or the colors change. */

const NEAR = "300px";
const NARROW = 560; // pixels under which a drawing leaves out what it can
const WIDE = 900;
const figures = new Map();

/** The parts of a figure that a drawing fills. */
function partsOf(figure) {
  const part = (name) => figure.querySelector(`.${name}`);
  return { figure, drawing: part("drawing"), controls: part("controls"), key: part("key") };
}

/**
 * Let `draw(width)` fill a figure with the node it returns, whenever that is needed.
 * `height` is kept free until then, so that nothing moves under the reader.
 */
function register(figure, draw, height) {
  const { drawing } = partsOf(figure);
  drawing.style.minHeight = `${height}px`;
  figures.set(figure, { draw, drawing, width: 0 });
  nearness.observe(figure);
}

/** Do a step of a figure; where it fails the figure says so, and the others are drawn all the same. */
function attempt(figure, step) {
  try {
    step();
  } catch (error) {
    const sentence = `This drawing could not be made (${error.message}); its numbers are in the table.`;
    partsOf(figure).drawing.replaceChildren(element("p", { class: "failed", role: "alert" }, sentence));
  }
}

/** Draw a figure now, at the width it has. */
function redraw(figure) {
  const entry = figures.get(figure);
  const width = Math.floor(entry.drawing.clientWidth);
  if (width === 0) return; // hidden: its turn comes with its first width
  const hadFocus = entry.drawing.contains(document.activeElement);
  entry.width = width;
  entry.drawing.style.minHeight = "";
  attempt(figure, () => entry.drawing.replaceChildren(entry.draw(width)));
  if (hadFocus) entry.drawing.querySelector("[tabindex]")?.focus({ preventScroll: true });
  if (!("drawn" in figure.dataset)) {
    figure.dataset.drawn = "";
    performance.mark("equisep-plot");
    widths.observe(entry.drawing);
  }
}

const nearness = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      nearness.unobserve(target);
      if (!("drawn" in target.dataset)) redraw(target);
    }
  },
  { rootMargin: NEAR },
);

const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const figure = target.closest("figure");
    const width = Math.floor(target.clientWidth);
    if (width > 0 && Math.abs(width - figures.get(figure).width) > 1) redraw(figure);
  }
});

/** Draw what the reader has not come to: paper has no scrolling. */
function drawAll() {
  for (const figure of figures.keys()) if (!("drawn" in figure.dataset)) redraw(figure);
}

addEventListener("beforeprint", drawAll);
matchMedia("print").addEventListener("change", (event) => event.matches && drawAll());
darkness.addEventListener("change", () => {
  for (const figure of figures.keys()) if ("drawn" in figure.dataset) redraw(figure);
});
