// Dismisses notices, and opens confirmations as dialogs of the page. When a dialog closes, the browser returns the
// focus to the link that opened it. A form that the service refused is shown as the operator left it.
import { countAudience } from "./count-campaign-audience.js";
import { showFault } from "./import.js";
import { fetchPage } from "./refresh-in-place.js";

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
});

/**
 * Opens a dialog, and focuses its first text field, or Cancel if it has none. A field for the name that confirms the
 * action does not count as a text field here.
 */
function open(dialog) {
  dialog.showModal();
  dialog.querySelector("textarea, label input:not([name=confirm], [type=checkbox]), [data-cancel]").focus();
  for (const field of dialog.querySelectorAll("input[name=confirm]")) checkTyped(field);
  for (const form of dialog.querySelectorAll("form:has([data-count])")) void countAudience(form);
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

/** Key under which the browser keeps what a form sends, until the next page shows whether the service took it. */
const SENT = "sent";

document.addEventListener("submit", ({ target, defaultPrevented }) => {
  // A browser keeps no copy of a token.
  if (target.method !== "post" || defaultPrevented || target.querySelector("[type=password]") !== null) return;
  const entries = [...new FormData(target)].filter(
    ([name, value]) => name !== "form_token" && !(value instanceof File),
  );
  sessionStorage.setItem(SENT, JSON.stringify([target.getAttribute("action"), entries]));
});

/** Shows a form that the service has just refused as the operator left it; in its dialog, with the reason. */
function restore([action, entries], reason) {
  const wasSent = ({ name, value }) =>
    ["form_token", "changed_at"].includes(name) || entries.some((one) => one[0] === name && one[1] === value);
  const form = [...document.querySelectorAll(`form[action="${action}"]`)].find((one) =>
    [...one.querySelectorAll("[type=hidden]")].every(wasSent),
  );
  for (const field of form?.querySelectorAll(":is(input:not([type=hidden], [type=file]), select, textarea)") ?? []) {
    const sent = entries.find(
      ([name, value]) => name === field.name && (field.type !== "radio" || value === field.value),
    );
    if (field.type === "checkbox" || field.type === "radio") field.checked = sent !== undefined;
    else if (sent !== undefined) field.value = sent[1];
  }
  const dialog = form?.closest("dialog");
  if (dialog == null) return;
  showFault(form, reason);
  open(dialog);
}

const sent = JSON.parse(sessionStorage.getItem(SENT));
const refused = document.querySelector(".notice.fault [role=alert]");
sessionStorage.removeItem(SENT);
if (sent !== null && refused !== null) restore(sent, refused.textContent);
