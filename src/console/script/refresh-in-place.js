// Fetches pages of the console and changes in place what differs. Without this script the pages show the same, but are
// not updated while they are open.
import { Idiomorph } from "./idiomorph.js";

/**
 * Options for changing a page in place: parts that the reader opened stay open, and a text that a screen reader reads is
 * not changed.
 */
const MORPH = {
  callbacks: {
    beforeAttributeUpdated: (name) => name !== "open" && name !== "data-on",
    beforeNodeMorphed: (node) => node.nodeName !== "OUTPUT" && !(node.nodeName === "DIALOG" && node.open),
  },
};

/**
 * Options for refreshing a page: those of `MORPH`, and a form keeps what the reader has typed or chosen and not yet
 * sent. Only the form of a filter shows what the page's address says.
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
  // A hidden field says what the reader saw before typing, such as the time of a campaign's last change.
  if (element.type === "hidden") {
    return [...form.elements].some((field) => field.type !== "hidden" && isUnsent("value", field));
  }
  if (name === "checked") return element.checked !== element.defaultChecked;
  return (
    name === "selected" || (name === "value" && "defaultValue" in element && element.value !== element.defaultValue)
  );
}

export function morph(shown, wanted, options = {}) {
  // A text that the reader types is not changed. A focused link or button changes like all others.
  const ignoreActiveValue = isTyping({ target: document.activeElement ?? document.body });
  Idiomorph.morph(shown, wanted, { ...MORPH, ignoreActiveValue, ...options });
}

export const readAddress = () => location.pathname + location.search;

/** Address of the page. While the panel with an event is open, the browser shows the event's address instead. */
export const own = { address: readAddress() };

/** Fetches a page of the console. Throws if the status is neither a success nor in `shown`. */
export async function fetchPage(href, options = {}, shown = [404, 422]) {
  // oxlint-disable-next-line no-restricted-globals -- runs in a browser, and calls only the service that sent the page
  const response = await fetch(href, { headers: { accept: "text/html" }, ...options });
  if (response.status === 401) location.reload();
  // The page of a 404 is shown, because a later event may create what it lacks. The page of a 422 is shown, because it
  // says why a form was refused.
  if (!response.ok && !shown.includes(response.status)) throw new Error(`the service answered ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

/** Functions of other parts of the script, which are called after each refresh of the page. */
export const afterFetch = [];

export async function fetchAgain() {
  const href = own.address;
  const page = await fetchPage(href);
  // During the request the reader chose another filter, so the fetched page is out of date.
  if (href !== own.address) return;
  for (const id of ["#main", "#menu", "#verified", "#moment"]) {
    const shown = document.querySelector(id);
    if (shown !== null && !shown.matches(":popover-open")) morph(shown, page.querySelector(id), REFRESH);
  }
  for (const act of afterFetch) await act();
}

/** True if a key was pressed in a field, where it is text and no shortcut. */
export const isTyping = ({ target }) =>
  target.closest("input:not([type=checkbox], [type=radio], [type=range]), select, textarea") !== null;

/** True for a click or a key that the console may handle: with a modifier it belongs to the browser. */
export const isPlain = (event) => !event.ctrlKey && !event.metaKey && !event.altKey && !event.defaultPrevented;
