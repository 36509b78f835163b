import { escapeHtml, htmlPage } from "../html.ts";
import type { Person } from "./people.ts";
import { SCOPES } from "./scopes.ts";
import type { XState } from "./state.ts";

/** The app's name as it is registered. */
const APP_NAME = "reachlog (sandbox)";

/** What a person sees and clicks. Everything that was asked for comes back with the form. */
export function consentPage(state: XState, parameters: URLSearchParams): string {
  const hidden = [...parameters].map(
    ([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`,
  );
  const accounts = [...state.people.values()].filter(({ can_authorize }) => can_authorize === true);
  const scopes = (parameters.get("scope") ?? "")
    .split(" ")
    .map((scope) => `<li>${escapeHtml(SCOPES[scope] ?? "")}</li>`);
  return htmlPage(
    "Authorize app",
    `<div class="card"><h1>${escapeHtml(APP_NAME)} wants to access your X account</h1>
<form method="post" action="?">${hidden.join("")}
<p>As</p>${accounts.map(accountChoice).join("")}
<p>The app will be able to</p><ul>${scopes.join("")}</ul>
<button name="decision" value="authorize">Authorize app</button>
<button name="decision" value="cancel">Cancel</button></form></div>`,
  );
}

function accountChoice({ id, username, name }: Person, position: number): string {
  const checked = position === 0 ? " checked" : "";
  const shown = `${escapeHtml(name)} (@${escapeHtml(username)})`;
  return `<label><input type="radio" name="account" value="${escapeHtml(id)}"${checked}> ${shown}</label>`;
}

/** X's words for a client or a redirect that it does not know. */
export function sorryPage(): string {
  return htmlPage(
    "Something went wrong",
    `<div class="card"><h1>Something went wrong</h1>
<p>You weren't able to give access to the App. Go back and try logging in again.</p></div>`,
  );
}
