/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { HtmlPage } from "../html.tsx";
import type { Network } from "../network-origins-and-refusals.ts";

/** Titles of the networks, in the order of the menu. */
export const TITLES: Readonly<Record<Network, string>> = {
  x: "X",
  meta: "Meta",
  openai: "OpenAI Ads",
  snap: "Snap",
  slack: "Slack",
  discord: "Discord",
  google_chat: "Google Chat",
  teams: "Teams",
  telegram: "Telegram",
  line: "LINE",
  whatsapp: "WhatsApp",
};

export type PagePath = "/" | `/networks/${Network}`;

export function pathOf(network: Network): PagePath {
  return `/networks/${network}`;
}

export const PAGES: readonly { readonly path: PagePath; readonly title: string }[] = [
  { path: "/", title: "Overview" },
  ...(Object.keys(TITLES) as Network[]).map((network) => ({ path: pathOf(network), title: TITLES[network] })),
];

interface SandboxDocumentProps {
  readonly title: string;
  readonly path: PagePath;
  /** Present time of the sandbox's clock, ms since the epoch. */
  readonly now: number;
  readonly children: ComponentChildren;
}

/** Frame of each page of the sandbox: its head, the menu, and the present time of the sandbox's clock. */
export function SandboxDocument({ title, path, now, children }: SandboxDocumentProps): VNode {
  return (
    <HtmlPage title={path === "/" ? title : `${title} · reachlog sandbox`} script="/sandbox.js">
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

/** Shows the time of day; the tooltip has date and time. */
export function Time({ at }: { readonly at: number }): VNode {
  const moment = new Date(at).toISOString();
  return (
    <time dateTime={moment} title={moment}>
      {moment.slice(11, 19)}
    </time>
  );
}

/** Formats a count with its noun, such as `1 message` or `12,345 messages`. */
export function counted(number: number, noun: string): string {
  return `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;
}
