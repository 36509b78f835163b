/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { HtmlPage } from "../html.tsx";
import type { Network } from "../network.ts";

/** The networks' names, in the order of the menu. */
export const TITLES: Readonly<Record<Network, string>> = {
  x: "X",
  meta: "Meta",
  slack: "Slack",
  discord: "Discord",
  google_chat: "Google Chat",
  teams: "Teams",
  telegram: "Telegram",
  line: "LINE",
  whatsapp: "WhatsApp",
};

export type PagePath = "/" | "/people" | `/networks/${Network}`;

export function pathOf(network: Network): PagePath {
  return `/networks/${network}`;
}

export const PAGES: readonly { readonly path: PagePath; readonly title: string }[] = [
  { path: "/", title: "Overview" },
  ...(Object.keys(TITLES) as Network[]).map((network) => ({ path: pathOf(network), title: TITLES[network] })),
  { path: "/people", title: "People and limits" },
];

interface SandboxDocumentProps {
  readonly title: string;
  /** Undefined if the page is not in the menu. */
  readonly path?: PagePath;
  /** The sandbox's time, ms since the epoch. */
  readonly now: number;
  readonly children: ComponentChildren;
}

/** The common parts of each page of the sandbox: head, menu, and its present time. */
export function SandboxDocument({ title, path, now, children }: SandboxDocumentProps): VNode {
  return (
    <HtmlPage
      title={path === "/" ? title : `${title} · reachlog sandbox`}
      {...(path === undefined ? {} : { script: "/sandbox.js" })}
    >
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header>
        <a class="brand" href="/">
          reachlog sandbox
        </a>
        <nav aria-label="Pages">
          {PAGES.map((page) => (
            <a href={page.path} aria-current={page.path === path ? "page" : undefined}>
              {page.title}
            </a>
          ))}
        </nav>
      </header>
      <main id="main">{children}</main>
      <footer>
        <p id="clock">
          It is <Time at={now} /> UTC in the sandbox. All times are of its clock.
        </p>
        <p id="connection" role="status" />
      </footer>
    </HtmlPage>
  );
}

/** The time of day; the title contains date and time. */
export function Time({ at }: { readonly at: number }): VNode {
  const moment = new Date(at).toISOString();
  return (
    <time dateTime={moment} title={moment}>
      {moment.slice(11, 19)}
    </time>
  );
}

/** Formats a number as in 12,345. */
export function grouped(number: number): string {
  return number.toLocaleString("en-US");
}

/** Formats a count as in 1 message, 2 messages. */
export function counted(number: number, noun: string): string {
  return `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** A page that describes an error and leads back. */
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
