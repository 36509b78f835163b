// On a chart the arrow keys move from bar to bar, and the text of the bar is read out.
import { afterFetch } from "./page.js";

/** Writes the present text of each chosen bar to where it is read out. */
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
