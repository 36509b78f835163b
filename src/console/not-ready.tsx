/** @jsxImportSource preact */
import type { VNode } from "preact";
import { ConsoleDocument } from "./document.tsx";

/** Said while the log is read up to a moment that nobody asked for before. */
export function notReadyPage(query: URLSearchParams): VNode {
  return (
    <ConsoleDocument title="Not ready yet">
      <h1>Not ready yet</h1>
      <p>The log is being read up to the moment that you asked for. That takes long the first time only.</p>
      <p>
        <a href={`?${query}`}>Ask again</a>, or wait: this page does so by itself.
      </p>
    </ConsoleDocument>
  );
}
