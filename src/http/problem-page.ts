import { renderPage } from "../console/document.tsx";
import { errorPage } from "../console/error-page.tsx";
import { html, type Answer } from "./answer.ts";
import type { Problem } from "./problem.ts";

/** Whether a person reads the answer: browsers ask for pages by name, programs for JSON or for anything. */
export function wantsPage({ headers }: Request): boolean {
  const accepted = headers.get("accept") ?? "";
  return accepted.includes("text/html") && !accepted.includes("json");
}

/** The same refusal as programs get, with the same status and headers, as a page with a way on. */
export function problemPage({ status, title, message, headers, people }: Problem, requestId: string): Answer {
  const page = errorPage({ title, words: people.words ?? message, wayOn: people.wayOn, requestId });
  return html(status, renderPage(page), headers);
}
