// The marks that the page draws with, and no others: what is not named here is shaken out of the bundle.
export {
  axisY,
  barX,
  cell,
  dot,
  frame,
  line,
  plot,
  pointer,
  pointerX,
  rect,
  ruleX,
  ruleY,
  text,
  tip,
} from "@observablehq/plot";
