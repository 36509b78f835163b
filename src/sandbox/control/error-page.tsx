/** @jsxImportSource preact */
import type { VNode } from "preact";
import { SandboxDocument } from "./document.tsx";

/** What went wrong, and the way back. */
export function errorPage(now: number, title: string, detail: string): VNode {
  return (
    <SandboxDocument title={title} now={now}>
      <h1>{title}</h1>
      <p>{detail}</p>
      <p>
        <a href="/">To the overview</a>
      </p>
    </SandboxDocument>
  );
}
