// Keeps a page of the console as the log is now: whenever events arrive, the page is fetched again and what differs is
// changed in place. Without this script the pages read the same; they stand still.
import { Idiomorph } from "./idiomorph.js";

/** Between two fetches, however many events come; longer where a page takes the service long. */
const REFRESH_MS = 1_000;
const REFRESH_SHARE = 10;

/** A slider that was not moved for so long has come to rest. */
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

/** What a reader has opened stays open, and what is being typed stays as it is. */
const MORPH = {
  ignoreActiveValue: true,
  callbacks: { beforeAttributeUpdated: (name) => name !== "open" },
};

const connection = document.querySelector("#connection");

function setConnection(text, isLost) {
  connection.textContent = text;
  connection.classList.toggle("lost", isLost);
}

let refresh;
let refreshMs = REFRESH_MS;

async function fetchAgain() {
  const { href } = location;
  // oxlint-disable-next-line no-restricted-globals -- in a browser, of the service that sent the page
  const response = await fetch(href, { headers: { accept: "text/html" } });
  if (response.status === 401) return location.reload();
  // What is not known yet may be after the next event.
  if (!response.ok && response.status !== 404) throw new Error(`the service answered ${response.status}`);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  // Another filter was chosen meanwhile.
  if (location.href !== href) return;
  for (const id of ["#main", "#shown", "#moment"]) {
    const shown = document.querySelector(id);
    if (shown !== null) Idiomorph.morph(shown, page.querySelector(id), MORPH);
  }
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

/** What goes on without events, such as a verification, says so by an element. */
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

/** What the page was asked for. */
let { search } = location;

/** A filter applies as it is changed, and the keyboard stays where it is. */
async function applyFilter(form) {
  const chosen = [...new FormData(form)].filter(([, value]) => value !== "");
  history.pushState(null, "", `${form.action}?${new URLSearchParams(chosen)}`);
  ({ search } = location);
  await fetchAgain().catch(() => location.reload());
}

document.addEventListener("change", ({ target }) => {
  const form = target.closest("form[data-apply]");
  if (form !== null) void applyFilter(form);
});
// A link within the page is one too.
addEventListener("popstate", () => location.search === search || location.reload());

/** The slider says its moment, and leads there when it has come to rest: keys move it in many steps. */
function watchSlider(slider) {
  let rest;
  slider.addEventListener("input", () => {
    const moment = EXACT.format(Number(slider.value));
    slider.setAttribute("aria-valuetext", moment);
    slider.nextElementSibling.textContent = moment;
  });
  slider.addEventListener("change", () => {
    clearTimeout(rest);
    rest = setTimeout(() => {
      const moment = new URL(location.href);
      moment.searchParams.set("as_of", new Date(Number(slider.value)).toISOString());
      location.assign(moment);
    }, SLIDER_REST_MS);
  });
}

// What was stays as it was, and a page without a position cannot be asked for again.
const { position } = document.querySelector("main").dataset;
if (document.body.dataset.asOf === undefined && position !== undefined) follow(position);
document.querySelectorAll(".moment input[type=range]").forEach(watchSlider);

/** The key / leads to the search box, but never while something is being typed. */
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, select, textarea") !== null;
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  event.preventDefault();
  document.querySelector(".find input").focus();
});

showTimes();
setInterval(showTimes, 1_000);
