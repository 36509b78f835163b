/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { escapeControls } from "../platform/escape-controls.ts";
import { Time } from "./time.tsx";

/** The console's pages, in the order of the menu. */
export const PAGES = [
  { path: "/", title: "Overview" },
  { path: "/people", title: "People" },
  { path: "/links", title: "Links" },
  { path: "/variants", title: "Experiments" },
  { path: "/audit", title: "Audit" },
] as const;

export type PagePath = (typeof PAGES)[number]["path"];

/** Up to where a page shows the log. */
export interface Shown {
  /** Position of the last event; 0: the log is empty. */
  readonly position: number;
  /** Its time, ISO 8601. */
  readonly time: string | undefined;
}

interface ConsoleDocumentProps {
  readonly title: string;
  /** Undefined on a page that is not of the menu, such as the sign-in. */
  readonly path?: PagePath;
  readonly shown?: Shown;
  readonly children: ComponentChildren;
}

/** What every page of the console has: head, menu, and how far the log was read for it. */
export function ConsoleDocument({ title, path, shown, children }: ConsoleDocumentProps): VNode {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{title === "reachlog" ? title : `${title} · reachlog`}</title>
        <link rel="stylesheet" href="/console.css" />
        {shown === undefined ? null : <script type="module" src="/console.js" />}
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <header>
          <a class="brand" href="/">
            reachlog
          </a>
          {path === undefined ? null : <Menu path={path} />}
        </header>
        <main id="main" data-position={shown?.position}>
          {children}
        </main>
        {shown === undefined ? null : <Footer shown={shown} />}
      </body>
    </html>
  );
}

function Menu({ path }: { readonly path: PagePath }): VNode {
  return (
    <nav aria-label="Pages">
      {PAGES.map((page) => (
        <a href={page.path} aria-current={page.path === path ? "page" : undefined}>
          {page.title}
        </a>
      ))}
    </nav>
  );
}

function Footer({ shown: { position, time } }: { readonly shown: Shown }): VNode {
  return (
    <footer>
      <p id="shown">
        {position === 0 ? (
          "The log is empty."
        ) : (
          <>
            Read up to position <b>{grouped(position)}</b>
            {time === undefined ? null : (
              <>
                , <Time at={time} />
              </>
            )}
            .
          </>
        )}
      </p>
      <p id="connection" role="status" />
    </footer>
  );
}

/** 12,345 */
export function grouped(number: number): string {
  return number.toLocaleString("en-US");
}

/** A whole HTML document. What others wrote is no markup in it, and turns the direction of nothing that stands beside it. */
export function renderPage(page: VNode): string {
  return `<!doctype html>${escapeControls(renderToString(page))}`;
}
