// Opens the form of an import as a dialog. Shows the preview of the import as soon as the operator changes the file or
// a choice.
import { fetchPage, isPlain, morph } from "./refresh-in-place.js";

const sheet = document.createElement("dialog");
sheet.className = "wide";
sheet.setAttribute("aria-labelledby", "import-title");
document.body.append(sheet);

async function openSheet(href) {
  try {
    const page = await fetchPage(href);
    sheet.replaceChildren(page.querySelector("#import"));
    sheet.showModal();
  } catch {
    location.assign(href);
  }
}

document.addEventListener("click", (event) => {
  const opener = event.target.closest("a[data-import]");
  if (opener === null || !isPlain(event)) return;
  event.preventDefault();
  void openSheet(opener.href);
});

/** Aborts the preview in progress. Undefined if none is. */
let reading;

/** Previews the form's file. A preview in progress is aborted, because its choices are out of date. */
async function preview(form) {
  reading?.abort();
  const own = new AbortController();
  reading = own;
  form.ariaBusy = "true";
  const fault = await showPreview(form, own.signal).catch(
    () => "The service did not answer. Nothing was imported: try again.",
  );
  if (reading !== own) return;
  reading = undefined;
  form.ariaBusy = null;
  if (fault !== undefined) showFault(form, fault);
}

/** Shows the preview. Resolves with the reason if the file was refused: the form then keeps the file. */
async function showPreview(form, signal) {
  const body = new FormData(form);
  const page = await fetchPage(form.dataset.preview, { method: "POST", body, signal }, ANSWERED);
  const next = page.querySelector("#import");
  if (signal.aborted) return undefined;
  if (next === null) return page.querySelector("main p")?.textContent;
  // The answer has no preview, only the choice of a file and why this one was refused.
  if (next.getAttribute("action") === form.dataset.preview) return next.querySelector("[role=alert]")?.textContent;
  const focused = document.activeElement;
  morph(form, next);
  if (!focused.isConnected) document.querySelector("#import [data-cancel]").focus();
  return undefined;
}

/** Statuses of answers with a page that says why a file was not previewed. */
const ANSWERED = [413, 422, 503];

/** Shows at the top of a form why the service refused it. */
export function showFault(form, text) {
  const alert = document.createElement("p");
  alert.className = "notice fault retry";
  alert.role = "alert";
  alert.textContent = text;
  form.querySelector(":scope > .retry")?.remove();
  form.prepend(alert);
}

document.addEventListener("change", ({ target }) => {
  const form = target.closest("form[data-preview]");
  if (form?.checkValidity()) void preview(form);
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-preview]");
  if (form === null) return;
  const action = event.submitter?.getAttribute("formaction") ?? form.getAttribute("action");
  if (action !== form.dataset.preview) return;
  event.preventDefault();
  // A change of the file or of a choice already started this preview.
  if (form.ariaBusy !== "true") void preview(form);
});
