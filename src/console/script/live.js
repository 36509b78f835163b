// Fetches the page again when the log grows.
import { fetchAgain } from "./refresh-in-place.js";

/** Minimum time in ms between an event and the refresh of the page, and between two refreshes. */
const REFRESH_MS = 1_000;

/** The wait before a refresh is at least this many times as long as the last refresh took. */
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

/**
 * Refreshes the page as long as it shows work that appends no events, such as a verification: such work is marked by an
 * element with `data-refresh`.
 */
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

// A page of an earlier moment is not refreshed, because that does not change. Neither is a page without a position,
// such as the answer to a form, which no address leads to.
const { position } = document.querySelector("main").dataset;
if (document.body.dataset.asOf === undefined && position !== undefined) follow(position);
