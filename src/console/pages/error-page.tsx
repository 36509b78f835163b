/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { ConsoleDocument, type PagePath } from "../document.tsx";
import type { DisclosingPage, NextStep, View } from "../page-context.ts";
import { A } from "../parts/links-forms-and-tabs.tsx";

export interface ErrorView {
  readonly title: string;
  /** Sentences on what went wrong, and what helps. */
  readonly words: string;
  /** Link to what the reader of the error page can do; undefined if it links to the console only. */
  readonly nextStep: NextStep | undefined;
  /** Id of the failed request, as in the lines that the service logged. */
  readonly requestId: string;
}

export function errorPage({ title, words, nextStep, requestId }: ErrorView): VNode {
  return (
    <ConsoleDocument title={title}>
      <h1>{title}</h1>
      <p>{words}</p>
      <ul>
        {nextStep === undefined ? null : (
          <li>
            <A href={nextStep.href}>{nextStep.label}</A>
          </li>
        )}
        <li>
          <A href="/">To the console</A>
        </li>
      </ul>
      <p class="quiet">
        Request <code>{requestId}</code>
      </p>
    </ConsoleDocument>
  );
}

/** Page that says that the log does not know the requested name, and where to look instead. */
export function missingPage(
  view: View<"account">,
  path: PagePath,
  title: string,
  words: ComponentChildren,
): DisclosingPage {
  const page = (
    <ConsoleDocument title={title} path={path} view={view}>
      <h1>{title}</h1>
      <p class="empty">{words}</p>
    </ConsoleDocument>
  );
  return { page, isMissing: true };
}

/** Page shown while the log is read up to a moment for which no states are stored yet. */
export function notReadyPage(query: URLSearchParams): VNode {
  return (
    <ConsoleDocument title="Not ready yet">
      <h1>Not ready yet</h1>
      <p>The log is being read up to the moment that you asked for. Only the first time takes long.</p>
      <p>
        <A href={`?${query}`}>Reload</A>, or wait: this page reloads by itself.
      </p>
    </ConsoleDocument>
  );
}
