// Dismisses notices, and opens confirmations as dialogs of the page. When a dialog closes, the browser returns the
// focus to the link that opened it. While the operator fills the form of a campaign, its audience is counted.
import { showFault } from "./import.js";
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
});

/** Opens a dialog. The focus is at the first field of a form to fill, and else at Cancel. */
function open(dialog) {
  dialog.showModal();
  if (dialog.querySelector("[autofocus]") === null) dialog.querySelector("[data-cancel]").focus();
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
  dialog.showModal();
  dialog.querySelector("[data-cancel]").focus();
}

document.addEventListener("submit", (event) => {
  const { target, submitter } = event;
  if (target.method !== "get" || submitter?.name !== "confirm") return;
  event.preventDefault();
  confirmForm(target, submitter).catch(() => location.reload());
});

/** Aborts the count in progress. Undefined before the first one. */
let counting;

/** Says how many recipients the described audience has and why others get no message, or which field is wrong. */
async function countAudience(form) {
  counting?.abort();
  counting = new AbortController();
  const asked = new URLSearchParams();
  const fields = [...form.querySelectorAll("[type=hidden][name=name], fieldset :is(input, select, textarea)")];
  for (const { name, value, type, checked } of fields) {
    const lines = type === "checkbox" && !checked ? [] : value.split("\n");
    for (const line of lines) if (line.trim() !== "") asked.append(name, line.trim());
  }
  // oxlint-disable-next-line no-restricted-globals -- in a browser, of the service that sent the page
  const response = await fetch(`/social/campaigns/count?${asked}`, { signal: counting.signal }).catch(() => undefined);
  const answer = response?.ok || response?.status === 422 ? await response.json() : undefined;
  if (answer === undefined) return;
  form.querySelector("[data-fault]")?.remove();
  for (const field of fields) field.setCustomValidity("");
  for (const { path, message } of answer.errors ?? []) showFieldFault(form.elements[path.split("/")[1]], message);
  const count = form.querySelector("[data-count]");
  count.value = response.ok ? describeCount(answer, JSON.parse(count.dataset.count)) : "";
}

function describeCount({ known, due, not_due: notDue, left_out: leftOut }) {
  const others = [...notDue, ...leftOut].map(
    ({ reason, recipients }) => `${recipients} ${reason.replaceAll("_", " ")}`,
  );
  return `${due} of ${known} may get a message now. ${others.length === 0 ? "" : `The others: ${others.join(", ")}.`}`;
}

/** Shows a fault after its field. The form cannot be sent with it. */
function showFieldFault(field, message) {
  field.setCustomValidity(message);
  const fault = document.createElement("small");
  fault.className = "red";
  fault.dataset.fault = "";
  fault.role = "alert";
  fault.textContent = message;
  field.after(fault);
}

document.addEventListener("change", ({ target }) => {
  const form = target.closest("form:has([data-count])");
  if (form !== null && target.closest("fieldset") !== null) void countAudience(form);
});

/** Key under which the browser keeps the fields of a campaign until the service has taken them. */
const SENT = "campaign";

document.addEventListener("submit", ({ target }) => {
  if (!target.matches("form:has([data-count])")) return;
  sessionStorage.setItem(SENT, JSON.stringify([target.getAttribute("action"), ...new FormData(target)]));
});

/** Opens the form of a campaign that the service has just refused, with the reason and what the operator typed. */
function reopenRefused(sent, reason) {
  const [action, ...entries] = JSON.parse(sent);
  const form = document.querySelector(`form[action="${action}"]`);
  for (const [name, value] of entries) {
    const field = form.elements[name];
    if (field.type === "checkbox") field.checked = true;
    else if (field.type !== "hidden") field.value = value;
  }
  showFault(form, reason);
  open(form.closest("dialog"));
}

const [sent, refused] = [sessionStorage.getItem(SENT), document.querySelector(".notice.fault [role=alert]")];
sessionStorage.removeItem(SENT);
if (sent !== null && refused !== null) reopenRefused(sent, refused.textContent);
