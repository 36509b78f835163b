// Fetches pages of the console and changes in place what differs. Without scripts the pages show the same, but are not
// updated.
import { Idiomorph } from "./idiomorph.js";

/** Keeps open what a reader has opened, and leaves alone what is being typed or read out. */
const MORPH = {
  ignoreActiveValue: true,
  callbacks: {
    beforeAttributeUpdated: (name) => name !== "open" && name !== "data-on",
    beforeNodeMorphed: (node) => node.nodeName !== "OUTPUT" && !(node.nodeName === "DIALOG" && node.open),
  },
};

/**
 * As `MORPH`, and keeps what a reader has typed or chosen in a form and not sent yet. A filter shows what the page's
 * address says.
 */
const REFRESH = {
  callbacks: {
    ...MORPH.callbacks,
    beforeAttributeUpdated: (name, element) => MORPH.callbacks.beforeAttributeUpdated(name) && !isUnsent(name, element),
  },
};

function isUnsent(name, element) {
  const form = element.closest("form");
  if (form === null || form.dataset.apply !== undefined) return false;
  if (name === "checked") return element.checked !== element.defaultChecked;
  return (
    name === "selected" || (name === "value" && "defaultValue" in element && element.value !== element.defaultValue)
  );
}

export function morph(shown, wanted, options = {}) {
  Idiomorph.morph(shown, wanted, { ...MORPH, ...options });
}

export const readAddress = () => location.pathname + location.search;

/** The address of the page itself. While the panel is open, the browser shows the event's address instead. */
export const own = { address: readAddress() };

export async function fetchPage(href, options = {}) {
  // oxlint-disable-next-line no-restricted-globals -- in a browser, of the service that sent the page
  const response = await fetch(href, { headers: { accept: "text/html" }, ...options });
  if (response.status === 401) location.reload();
  // A page that is not found is shown too: the next event may change that. So is a form that was refused.
  if (!response.ok && response.status !== 404 && response.status !== 422)
    throw new Error(`the service answered ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

/** Functions of other parts, called after the page was fetched again. */
export const afterFetch = [];

export async function fetchAgain() {
  const href = own.address;
  const page = await fetchPage(href);
  // Another filter was chosen during the request.
  if (href !== own.address) return;
  for (const id of ["#main", "#menu", "#verified", "#moment"]) {
    const shown = document.querySelector(id);
    if (shown !== null && !shown.matches(":popover-open")) morph(shown, page.querySelector(id), REFRESH);
  }
  for (const act of afterFetch) await act();
}

/** True while the reader types, so that keys are text. */
export const isTyping = ({ target }) =>
  target.closest("input:not([type=checkbox], [type=radio], [type=range]), select, textarea") !== null;

/** True for a click or a key without a modifier, which the browser would take for itself. */
export const isPlain = (event) => !event.ctrlKey && !event.metaKey && !event.altKey && !event.defaultPrevented;
