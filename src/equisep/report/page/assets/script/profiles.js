/* Sections that show each profile by itself: which one is shown, where there are several; on paper all of them are. */

const ALL = "all";
const choices = []; // { select, blocks } of each section

/** Show the chosen profile of a section alone, or all of them. */
function showChosen({ select, blocks }) {
  blocks.forEach((block, position) => {
    block.hidden = select.value !== ALL && select.value !== String(position);
  });
}

/** A choice at the head of every section that has several profiles: the first one until the reader chooses. */
function serveProfiles() {
  for (const section of document.querySelectorAll("section")) {
    const blocks = Array.from(section.querySelectorAll(":scope > .of-profile"));
    if (blocks.length < 2) continue;
    const options = blocks.map((block, position) => element("option", { value: position }, block.dataset.label));
    const id = `equisep-profile-${section.id}`;
    const select = element("select", { id }, ...options, element("option", { value: ALL }, `all ${blocks.length}`));
    const choice = { select, blocks };
    choices.push(choice);
    select.addEventListener("change", () => showChosen(choice));
    blocks[0].before(element("div", { class: "controls" }, element("label", { for: id }, "Profile"), select));
    showChosen(choice);
  }
}

addEventListener("beforeprint", () => {
  for (const { blocks } of choices) for (const block of blocks) block.hidden = false;
});
addEventListener("afterprint", () => choices.forEach(showChosen));
