// Dismisses notices, and opens confirmations as dialogs of the page. When a dialog closes, the browser returns the
// focus to the link that opened it.
import { fetchPage } from "./page.js";

document.addEventListener("click", (event) => {
  const read = event.target.closest("[data-dismiss]");
  if (read !== null) {
    event.preventDefault();
    return read.closest("section").remove();
  }
  const opener = event.target.closest("[data-dialog]");
  const dialog = opener === null ? event.target.closest("[data-cancel]")?.closest("dialog") : readDialog(opener);
  if (dialog == null) return;
  event.preventDefault();
  if (opener === null) return dialog.close();
  open(dialog);
  for (const field of dialog.querySelectorAll("input[name=confirm]")) checkTyped(field);
});

/** Opens a dialog. The first text to type has the focus, and else Cancel has it, also before a name to confirm. */
function open(dialog) {
  dialog.showModal();
  dialog.querySelector("textarea, label input:not([name=confirm], [type=checkbox]), [data-cancel]").focus();
}

const readDialog = ({ dataset }) => document.querySelector(`#${dataset.dialog}`);

/** Enables the button of a confirmation only once the operator has typed the name that the form asks for. */
function checkTyped(field) {
  field.form.querySelector("button").disabled = !field.checkValidity();
}

document.addEventListener("input", ({ target }) => {
  if (target.matches("dialog input[name=confirm]")) checkTyped(target);
});

/** Opens, as a dialog, the confirmation that the service renders from a form's fields. */
async function confirmForm(form, submitter) {
  const href = `${form.action}?${new URLSearchParams(new FormData(form, submitter))}`;
  const asked = await fetchPage(href).then((page) => page.querySelector("section.confirm"));
  const dialog = document.createElement("dialog");
  dialog.className = "confirm";
  dialog.setAttribute("aria-label", asked.querySelector("h1").textContent);
  dialog.append(...asked.childNodes);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  open(dialog);
}

document.addEventListener("submit", (event) => {
  const { target, submitter } = event;
  if (target.method !== "get" || submitter?.name !== "confirm") return;
  event.preventDefault();
  confirmForm(target, submitter).catch(() => location.reload());
});
