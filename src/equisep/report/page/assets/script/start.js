/* The beginning: every figure is given to what draws it; one that cannot be drawn says so and leaves the others alone. */

const DRAWERS = {
  law: lawFigure,
  work: workFigure,
  "class-d": classFigure,
  cosines: cosinesFigure,
  centers: centersFigure,
  cdnv: cdnvFigure,
  map: mapFigure,
  space: spaceFigure,
  residuals: residualsFigure,
  epochs: epochsFigure,
  "law-epochs": lawEpochsFigure,
  rare: rareFigure,
};

document.documentElement.classList.add("js");
serveProfiles();
for (const figure of document.querySelectorAll("figure.plot")) {
  const { plot, profile } = figure.dataset;
  const profiles = profile === undefined || profile === "all" ? data.profiles : [data.profiles[Number(profile)]];
  attempt(figure, () => DRAWERS[plot](figure, profiles));
}
// the first one at once, for whoever waits; the others as the reader comes near them
if (figures.size > 0) redraw(figures.keys().next().value);
serveTables();
document.documentElement.dataset.ready = "";
