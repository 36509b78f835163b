// Opens the event of a clicked link in a panel next to the list. The browser then shows the event's address.
import { afterFetch, fetchAgain, fetchPage, isPlain, morph, own, readAddress } from "./refresh-in-place.js";

/** Matches the path of an event's page. */
const EVENT = /^\/activity\/\d+$/;
const isOfEvent = EVENT.test(location.pathname);
export const panel = document.createElement("dialog");
const panelEvent = document.createElement("div");
const panelClose = document.createElement("button");
/** Address of the link that opened the panel, which gets the focus again when the panel closes. */
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
  morph(panelEvent, page.querySelector("#main").innerHTML, { morphStyle: "innerHTML" });
}

afterFetch.push(() => (panel.open ? fillPanel() : undefined));

/**
 * Opens the panel with the event at the browser's address. On a wide window the list next to it stays usable; otherwise
 * the panel is modal.
 */
async function openPanel() {
  try {
    await fillPanel();
  } catch {
    return location.reload();
  }
  if (readAddress() === own.address) return;
  if (!panel.open && matchMedia("(min-width: 70rem)").matches) panel.show();
  else if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
  panelClose.focus();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (isOfEvent || link === null || event.button !== 0 || event.shiftKey || !isPlain(event)) return;
  if (link.origin !== location.origin || !EVENT.test(link.pathname)) return;
  event.preventDefault();
  if (!panel.contains(link)) opener = link.getAttribute("href");
  if (readAddress() === own.address) history.pushState(null, "", link.href);
  else history.replaceState(null, "", link.href);
  void openPanel();
});

/**
 * Closes the panel and goes back to the page's own address. The panel closes at once, so that a second press of Escape
 * does not go back further.
 */
export function leavePanel(event) {
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
    const isFromPanel = readAddress() === own.address;
    // A refresh does not change the field with the focus, so the focus is removed first.
    document.activeElement.blur();
    showAddress();
    if (isFromPanel) document.querySelector(`#main a[href="${CSS.escape(opener)}"]`)?.focus();
  }
});

/** Closes the panel. If the browser's address is no longer that of the page, fetches the page at the new address. */
export function showAddress() {
  const isOther = readAddress() !== own.address;
  own.address = readAddress();
  const focused = document.activeElement;
  panel.close();
  focused.focus();
  if (!isOther) return;
  for (const bar of document.querySelectorAll("[data-on]")) bar.removeAttribute("data-on");
  fetchAgain().catch(() => location.reload());
}
