// Handles shortcuts of a single character, unless the operator is typing or has switched the shortcuts off.
import { openMoment } from "./moment-slider.js";
import { isPlain, isTyping } from "./refresh-in-place.js";
import { leavePanel, panel } from "./event-panel.js";

const HOUR_MS = 3_600_000;

/** Maximum time in ms between `g` and the second key of a shortcut, such as `g p`. */
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

/** Returns the list's line that has the focus; undefined if none has it. */
const readLine = () => document.activeElement.closest(LINES) ?? undefined;

/** Gives the focus to the next line that can be opened or, with a `step` of -1, to the previous one. */
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

/**
 * Acts on the element whose `aria-keyshortcuts` names the key: clicks a link or a button, focuses a field. Returns
 * false if there is none.
 */
function press(key) {
  const target = document.querySelector(`[aria-keyshortcuts="${CSS.escape(key)}"]`);
  if (target?.matches("input")) target.focus();
  else target?.click();
  return target !== null;
}

let pairUntil = 0;

/** Does what the shortcut `key` means. Returns false for any other key, which the browser then handles. */
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
