// Fetches the page again when events arrive.
import { fetchAgain } from "./page.js";

/** The shortest wait before a refresh, and the ratio of the wait to the time that the last refresh took. */
const REFRESH_MS = 1_000;
const REFRESH_SHARE = 10;

const connection = document.querySelector("#connection");

function setConnection(text, isLost) {
  connection.textContent = text;
  connection.classList.toggle("lost", isLost);
}

let refresh;
let refreshMs = REFRESH_MS;

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

// A page of the past does not change, and a page without a position cannot be fetched again.
const { position } = document.querySelector("main").dataset;
if (document.body.dataset.asOf === undefined && position !== undefined) follow(position);
