/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { isoTime } from "../platform/clock.ts";
import { escapeControls } from "../platform/escape-controls.ts";
import { Time } from "./parts/time.tsx";
import type { Notice, View } from "./view.ts";

/** The console's pages, in the order of the menu. */
export const PAGES = [
  { path: "/", title: "Overview" },
  { path: "/people", title: "People" },
  { path: "/links", title: "Links" },
  { path: "/deliveries", title: "Deliveries" },
  { path: "/results", title: "Results" },
  { path: "/audit", title: "Audit" },
  { path: "/setup", title: "Setup" },
] as const;

export type PagePath = (typeof PAGES)[number]["path"];

interface ConsoleDocumentProps {
  readonly title: string;
  /** Undefined on a page that is not of the menu, such as the sign-in. */
  readonly path?: PagePath;
  readonly view?: View;
  /** Stands as it is when events arrive: what it shows is recorded nowhere, and cannot be asked for again. */
  readonly isStill?: boolean;
  readonly children: ComponentChildren;
}

/** What every page of the console has: head, menu, and how far the log was read for it. */
export function ConsoleDocument({ title, path, view, isStill = false, children }: ConsoleDocumentProps): VNode {
  const awaySince = view?.live?.awaySince();
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{title === "reachlog" ? title : `${title} · reachlog`}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="/console.css" />
        {view === undefined ? null : <script type="module" src="/console.js" />}
      </head>
      <body data-as-of={view?.asOf}>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <header>
          <a class="brand" href="/">
            reachlog
          </a>
          {path === undefined ? null : <Menu path={path} />}
          {view === undefined ? null : <SignOut view={view} />}
        </header>
        {view === undefined || isStill ? null : <MomentBar view={view} />}
        {awaySince === undefined ? null : <AwayBar since={awaySince} />}
        {view?.notice === undefined ? null : <NoticeBar {...view.notice} />}
        <main id="main" data-position={isStill ? undefined : view?.position}>
          {children}
        </main>
        {view === undefined ? null : <Footer view={view} />}
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

/** Renders nothing where the console needs no sign-in. */
function SignOut({ view: { formToken, settings } }: { readonly view: View }): VNode | null {
  if (formToken === undefined || !settings.wantsToken()) return null;
  return (
    <form class="sign-out" method="post" action="/session/end">
      <input type="hidden" name="form_token" value={formToken} />
      <button>Sign out</button>
    </form>
  );
}

/** What is shown was known when the log was last in reach. */
function AwayBar({ since }: { readonly since: number }): VNode {
  return (
    <p class="notice fault" role="status">
      The log is out of reach since <Time at={isoTime(since)} isExact />. Nothing is recorded meanwhile, and what is
      shown here may be out of date.
    </p>
  );
}

/** Outside of `main`, so that it stays when the page changes in place. */
function NoticeBar({ text, isFault, nextStep }: Notice): VNode {
  return (
    <p class={isFault ? "notice fault" : "notice"} role={isFault ? "alert" : "status"}>
      {text} {nextStep === undefined ? null : <a href={nextStep.href}>{nextStep.label}</a>}
    </p>
  );
}

/** Which moment the page is of, and the way to any other: a slider over the log, and a day. */
function MomentBar({ view }: { readonly view: View }): VNode | null {
  const { asOf, position, head } = view;
  if (head === 0) return null;
  return (
    <section class={asOf === undefined ? "moment" : "moment past"} aria-label="Moment">
      {asOf === undefined ? null : <PastSays view={view} />}
      <details open={asOf !== undefined}>
        <summary>Look at an earlier moment</summary>
        <form class="filter" method="get" data-moment>
          <OtherFields query={view.query} />
          <label class="slider">
            <span>
              As of position <span data-value>{grouped(position)}</span>
            </span>
            <input type="range" name="as_of" min={1} max={head} value={Math.max(1, position)} />
          </label>
          <button>Go</button>
        </form>
        <form class="filter" method="get" data-moment>
          <OtherFields query={view.query} />
          <label>
            End of <input type="date" name="as_of" required />
          </label>
          <button>Go</button>
        </form>
      </details>
    </section>
  );
}

function PastSays({ view: { query, position, time } }: { readonly view: View }): VNode {
  const others = new URLSearchParams(query);
  others.delete("as_of");
  return (
    <p>
      <b>As of position {grouped(position)}</b>, {time === undefined ? "before the first event" : <Time at={time} />}.
      Settings, such as the daily limit, are those of now. Nothing can be done here.{" "}
      <a href={`?${others}`} data-moment>
        Back to now
      </a>
    </p>
  );
}

/** What else the page was asked for: a form sends its own fields only. */
function OtherFields({ query }: { readonly query: URLSearchParams }): VNode {
  return (
    <>
      {[...query].map(([name, value]) => (name === "as_of" ? null : <input type="hidden" name={name} value={value} />))}
    </>
  );
}

function Footer({ view: { position, time } }: { readonly view: View }): VNode {
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

/** A part of a page under a heading, which names it. */
export function Section({ id, title, children }: { id: string; title: string; children: ComponentChildren }): VNode {
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
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
