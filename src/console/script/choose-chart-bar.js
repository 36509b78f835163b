// In a chart the arrow keys choose the next or the previous bar, and a screen reader reads the bar's text.
import { afterFetch } from "./refresh-in-place.js";

/** Writes the text of each chart's chosen bar into the element that a screen reader reads out. */
function readOut() {
  for (const output of document.querySelectorAll("figure output")) {
    const said = output.parentElement.querySelector("[data-on] title")?.textContent ?? "";
    if (output.textContent !== said) output.textContent = said;
  }
}

afterFetch.push(readOut);

document.addEventListener("keydown", (event) => {
  const plot = event.target.closest(".plot");
  const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
  if (plot === null || step === undefined) return;
  event.preventDefault();
  const bars = [...plot.querySelectorAll("g")];
  const at = bars.findIndex((bar) => "on" in bar.dataset);
  const bar = bars[Math.max(0, Math.min(bars.length - 1, (at === -1 && step < 0 ? bars.length : at) + step))];
  bars[at]?.removeAttribute("data-on");
  bar.setAttribute("data-on", "");
  readOut();
});
