// Opens the form of an import as a dialog. Shows the preview of the import as soon as the operator changes the file or
// a choice.
import { fetchPage, isPlain, morph } from "./page.js";

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

/** Number of previews that were requested so far. Only the answer to the newest request is shown. */
let previews = 0;

async function preview(form) {
  previews += 1;
  const number = previews;
  form.ariaBusy = "true";
  try {
    const page = await fetchPage(form.dataset.preview, { method: "POST", body: new FormData(form) });
    if (number !== previews) return;
    const focused = document.activeElement;
    morph(form, page.querySelector("#import"));
    if (!focused.isConnected) document.querySelector("#import [data-cancel]").focus();
  } catch {
    form.action = form.dataset.preview;
    form.submit();
  }
}

document.addEventListener("change", ({ target }) => {
  const form = target.closest("form[data-preview]");
  if (form?.checkValidity()) void preview(form);
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-preview]");
  if (form === null || form.action !== new URL(form.dataset.preview, location.href).href) return;
  event.preventDefault();
  void preview(form);
});
