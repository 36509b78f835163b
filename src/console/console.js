// Keeps a page of the console up to date: when events arrive, it fetches the page again and changes in place what
// differs. Without this script the pages show the same, but are not updated.
import { Idiomorph } from "./idiomorph.js";

/** The shortest wait before a refresh, and the ratio of the wait to the time that the last refresh took. */
const REFRESH_MS = 1_000;
const REFRESH_SHARE = 10;

/** A slider that was not moved for this long has come to rest. */
const SLIDER_REST_MS = 500;

const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
];

function showTimes() {
  for (const time of document.querySelectorAll("time")) {
    const ms = Date.parse(time.dateTime);
    const apart = ms - Date.now();
    const [unit, length] = UNITS.find(([, size]) => Math.abs(apart) >= size) ?? ["second", 1_000];
    time.title = EXACT.format(ms);
    time.textContent = "exact" in time.dataset ? time.title : RELATIVE.format(Math.round(apart / length), unit);
  }
}

/** Keeps open what a reader has opened, and leaves alone what is being typed or read out. */
const MORPH = {
  ignoreActiveValue: true,
  callbacks: {
    beforeAttributeUpdated: (name) => name !== "open" && name !== "data-on",
    beforeNodeMorphed: (node) => node.nodeName !== "OUTPUT",
  },
};

const connection = document.querySelector("#connection");

function setConnection(text, isLost) {
  connection.textContent = text;
  connection.classList.toggle("lost", isLost);
}

let refresh;
let refreshMs = REFRESH_MS;

const readAddress = () => location.pathname + location.search;

/** The address of the page itself. While the panel is open, the browser shows the event's address instead. */
let address = readAddress();

async function fetchPage(href) {
  // oxlint-disable-next-line no-restricted-globals -- in a browser, of the service that sent the page
  const response = await fetch(href, { headers: { accept: "text/html" } });
  if (response.status === 401) location.reload();
  // A page that is not found is shown too: the next event may change that.
  if (!response.ok && response.status !== 404) throw new Error(`the service answered ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

async function fetchAgain() {
  const href = address;
  const page = await fetchPage(href);
  // Another filter was chosen during the request.
  if (href !== address) return;
  for (const id of ["#main", "#shown", "#moment", "#menu", "#verified"]) {
    const shown = document.querySelector(id);
    if (shown !== null) Idiomorph.morph(shown, page.querySelector(id), MORPH);
  }
  readOut();
  if (panel.open) await fillPanel();
  showTimes();
}

function refreshSoon() {
  refresh ??= setTimeout(() => {
    const startedAt = performance.now();
    fetchAgain()
      .catch(() => setConnection("Connection lost: what you see may be old.", true))
      .finally(() => {
        refresh = undefined;
        refreshMs = Math.max(REFRESH_MS, (performance.now() - startedAt) * REFRESH_SHARE);
        refreshWhileItGoesOn();
      });
  }, refreshMs);
}

/** Work without events, such as a verification, marks itself by an element with `data-refresh`. */
function refreshWhileItGoesOn() {
  if (document.querySelector("#main [data-refresh]") !== null) refreshSoon();
}

function follow(position) {
  const events = new EventSource(`/events?only=position&from=${Number(position) + 1}`);
  events.addEventListener("open", () => setConnection("Live.", false));
  events.addEventListener("error", () => setConnection("Connection lost: what you see may be old.", true));
  events.addEventListener("message", refreshSoon);
  refreshWhileItGoesOn();
}

/** Shows the moment of the slider, and opens it once the slider has come to rest: keys move it in many steps. */
function watchSlider(slider) {
  let rest;
  slider.addEventListener("input", () => {
    const moment = EXACT.format(Number(slider.value));
    slider.setAttribute("aria-valuetext", moment);
    document.querySelector("[data-value]").textContent = moment;
  });
  slider.addEventListener("change", () => {
    clearTimeout(rest);
    rest = setTimeout(() => {
      const moment = new URL(address, location.href);
      moment.searchParams.set("as_of", new Date(Number(slider.value)).toISOString());
      location.assign(moment);
    }, SLIDER_REST_MS);
  });
}

/**
 * The path of an event's page. A link to one opens the event in a panel next to the list, under the event's address.
 */
const EVENT = /^\/activity\/\d+$/;
const isOfEvent = EVENT.test(location.pathname);
const panel = document.createElement("dialog");
const panelEvent = document.createElement("div");
const panelClose = document.createElement("button");
/** The address of the link that opened the panel. */
let opener;
panel.id = "panel";
panel.setAttribute("aria-label", "Event");
panelEvent.className = "stack";
panelClose.textContent = "Close";
panel.append(panelClose, panelEvent);
document.body.append(panel);

async function fillPanel() {
  const href = readAddress();
  const page = await fetchPage(href);
  if (href !== readAddress()) return;
  Idiomorph.morph(panelEvent, page.querySelector("#main").innerHTML, { ...MORPH, morphStyle: "innerHTML" });
  showTimes();
}

/** Opens the panel. If the page has room for both, the list stays usable. */
async function openPanel() {
  try {
    await fillPanel();
  } catch {
    return location.reload();
  }
  if (readAddress() === address) return;
  if (!panel.open && matchMedia("(min-width: 70rem)").matches) panel.show();
  else if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
  panelClose.focus();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (isOfEvent || link === null || !isPlain || link.origin !== location.origin || !EVENT.test(link.pathname)) return;
  event.preventDefault();
  if (!panel.contains(link)) opener = link.getAttribute("href");
  if (readAddress() === address) history.pushState(null, "", link.href);
  else history.replaceState(null, "", link.href);
  void openPanel();
});

/**
 * Goes back to the page's own address. The panel is closed at once, so that a second press does not go back further.
 */
function leavePanel(event) {
  event.preventDefault();
  panel.close();
  history.back();
}

panelClose.addEventListener("click", leavePanel);
panel.addEventListener("cancel", leavePanel);

addEventListener("popstate", () => {
  if (isOfEvent) location.reload();
  else if (EVENT.test(location.pathname)) void openPanel();
  else {
    const isFromPanel = readAddress() === address;
    // A field with the focus would keep its typed text.
    document.activeElement.blur();
    showAddress();
    if (isFromPanel) document.querySelector(`#main a[href="${CSS.escape(opener)}"]`)?.focus();
  }
});

/** Shows the page at the browser's address if that is another one. */
function showAddress() {
  const isOther = readAddress() !== address;
  address = readAddress();
  const focused = document.activeElement;
  panel.close();
  focused.focus();
  if (!isOther) return;
  for (const bar of document.querySelectorAll("[data-on]")) bar.removeAttribute("data-on");
  fetchAgain().catch(() => location.reload());
}

/** Applies a filter as soon as one of its fields changes; in place, so that the field keeps the focus. */
function applyFilter(event) {
  const form = event.target.closest("form[data-apply]");
  if (form === null) return;
  event.preventDefault();
  // Such as a year that is typed only in part.
  if (!form.checkValidity()) return;
  const filled = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  // A chosen value becomes a chip.
  if (form.dataset.apply === "chips") for (const select of form.querySelectorAll("select")) select.value = "";
  const href = filled.size === 0 ? form.action : `${form.action}?${filled}`;
  if (href === location.href) return;
  history.pushState(null, "", href);
  showAddress();
}

document.addEventListener("change", applyFilter);
document.addEventListener("submit", applyFilter);

// A page of the past does not change, and a page without a position cannot be fetched again.
const { position } = document.querySelector("main").dataset;
if (document.body.dataset.asOf === undefined && position !== undefined) follow(position);
document.querySelectorAll(".moment input[type=range]").forEach(watchSlider);

/** The key / focuses the search box, but never while something is being typed. */
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && panel.open) leavePanel(event);
  const isTyping = event.target.closest("input, select, textarea") !== null;
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  event.preventDefault();
  document.querySelector(".find input").focus();
});

/** Writes the present text of each chosen bar to where it is read out. */
function readOut() {
  for (const output of document.querySelectorAll("output")) {
    const said = output.parentElement.querySelector("[data-on] title")?.textContent ?? "";
    if (output.textContent !== said) output.textContent = said;
  }
}

/** On a chart the arrow keys move from bar to bar, and the text of the bar is read out. */
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

showTimes();
setInterval(showTimes, 1_000);
