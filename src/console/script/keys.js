// Keys of a single character, but never while something is being typed, and not if they are switched off.
import { openMoment } from "./moment.js";
import { isPlain, isTyping } from "./page.js";
import { leavePanel, panel } from "./panel.js";

const HOUR_MS = 3_600_000;

/** Time in ms in which the second key of a pair must follow. */
const PAIR_MS = 1_500;

const PAGES = { o: "/", p: "/people", r: "/runs", a: "/activity", d: "/deliveries" };
const LINES = "main :is(ol > li, ul:not(.presets) > li, tbody > tr, details.line)";
const SWITCHED_OFF = "single-keys-off";

const singleKeys = document.querySelector("#single-keys");
singleKeys.checked = localStorage.getItem(SWITCHED_OFF) === null;
singleKeys.addEventListener("change", () => {
  if (singleKeys.checked) localStorage.removeItem(SWITCHED_OFF);
  else localStorage.setItem(SWITCHED_OFF, "");
});

/** The line with the focus; undefined if none has it. */
const readLine = () => document.activeElement.closest(LINES) ?? undefined;

/** Gives the focus to the next line that has something to open, or to the previous one. */
function moveLine(step) {
  const openers = (line) => line.querySelector("summary, a[href], button");
  const isShown = (line) => line.checkVisibility() && openers(line)?.closest(LINES) === line;
  const lines = [...document.querySelectorAll(LINES)].filter(isShown);
  const at = lines.indexOf(readLine());
  const next = lines[at === -1 && step < 0 ? lines.length - 1 : at + step];
  if (next === undefined) return;
  openers(next).focus();
  next.scrollIntoView({ block: "nearest" });
}

/** Follows the link or presses the button that names the key, or gives its field the focus. */
function press(key) {
  const target = document.querySelector(`[aria-keyshortcuts="${CSS.escape(key)}"]`);
  if (target?.matches("input")) target.focus();
  else target?.click();
  return target !== null;
}

let pairUntil = 0;

/** Does what a key says. Returns false if it says nothing, so that the browser takes it. */
function act(key) {
  if (performance.now() < pairUntil) {
    pairUntil = 0;
    const link = [...document.querySelectorAll("#menu a")].find(({ pathname }) => pathname === PAGES[key]);
    link?.click();
    return link !== undefined;
  }
  switch (key) {
    case "g":
      pairUntil = performance.now() + PAIR_MS;
      return true;
    case "j":
    case "k":
      moveLine(key === "j" ? 1 : -1);
      return true;
    case "x":
      readLine()?.querySelector("input[type=checkbox]")?.click();
      return true;
    case " ": {
      const summary = document.activeElement.matches("a") ? readLine()?.querySelector("summary") : undefined;
      summary?.click();
      return summary != undefined;
    }
    case "[":
      if (!press(key)) openMoment(new Date(Date.now() - HOUR_MS).toISOString());
      return true;
    case "/":
    case "t":
    case "]":
    case "n":
    case "?":
      return press(key);
    default:
      return false;
  }
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && panel.open && !event.defaultPrevented) leavePanel(event);
  const isOff = !singleKeys.checked || document.querySelector("dialog:modal") !== null;
  if (isOff || event.key.length !== 1 || event.repeat || !isPlain(event) || isTyping(event)) return;
  if (act(event.key)) event.preventDefault();
});
