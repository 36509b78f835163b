import type { Recorded } from "../../events/catalog.ts";
import { channelsOf, pendingOf, type Deliveries } from "../../projections/deliveries.ts";
import type { Account } from "../../projections/account.ts";
import type { Clicks } from "../../projections/clicks.ts";
import { byLastClick } from "../../projections/recent-links.ts";
import type { RunState } from "../../projections/run.ts";
import type { Stats } from "../../projections/stats.ts";
import type { Suspected } from "../../projections/suspected.ts";
import { escapeControls } from "../platform/escape-controls.ts";

/** What the console shows: projections, and the newest events. */
export interface ConsoleView {
  readonly stats: Stats;
  readonly account: Account;
  readonly run: RunState | null;
  readonly quota: { readonly limit: number; readonly used: number };
  readonly inDoubt: number;
  readonly clicks: Clicks;
  readonly suspected: Suspected;
  readonly deliveries: Deliveries;
  readonly position: number;
  /** Newest first. */
  readonly events: readonly Recorded[];
}

/** The operator's page: plain HTML, no script, nothing loaded from elsewhere. */
export function consolePage(view: ConsoleView): string {
  const { account, run, quota } = view;
  const user = account.user === null ? "nobody" : `@${account.user.username}`;
  const who = account.authorized
    ? `authorized as <b>${escape(user)}</b>`
    : `not authorized (${escape(user)}): <a href="/social/auth">authorize an X account</a>`;
  const running = run === null ? "no run in progress" : `run ${escape(run.run_id)} since ${escape(run.started_at)}`;
  return layout(
    "reachlog",
    `<h1>reachlog</h1>
<p>${who} · ${running} · today ${quota.used} of ${quota.limit} messages · log at position ${view.position}</p>
<h2>Outreach</h2>
${table(["sent", "skipped", "failed", "in doubt"], [[view.stats.sent, view.stats.skipped, view.stats.failed, view.inDoubt]])}
<h2>Deliveries</h2>
${table(["channel", "delivered", "pending", "skipped", "in doubt", "dead letters", "suspended"], deliveryRows(view.deliveries))}
<h2>Clicks</h2>
<p>${view.clicks.total} by people (of these ${view.suspected.all.suspected} suspected to be X's own), ${view.clicks.bots} by bots</p>
${table(["link", "people", "suspected", "bots", "last"], linkRows(view.clicks, view.suspected))}
<h2>Newest events</h2>
${table(["position", "time", "type", "stream", "caller"], view.events.map(eventRow))}`,
  );
}

/** Asks for a token once. */
export function signInPage(failed: boolean): string {
  return layout(
    "reachlog: sign in",
    `<h1>reachlog</h1>
<p>${failed ? "That is not a token of this service." : "Sign in with an API token."}</p>
<form method="post" action="/session"><label>Token <input name="token" type="password" autofocus required></label>
<button>Sign in</button></form>`,
  );
}

/** Links shown: those clicked last. */
const LINKS_SHOWN = 20;

function linkRows({ links }: Clicks, suspected: Suspected): Cell[][] {
  return byLastClick(links)
    .slice(0, LINKS_SHOWN)
    .map(([link, { clicks, bots, last }]) => [link, clicks, suspected.links.get(link)?.suspected ?? 0, bots, last]);
}

function deliveryRows(deliveries: Deliveries): Cell[][] {
  return channelsOf(deliveries).map(([name, channel]) => [
    name,
    channel.dispatched,
    pendingOf(channel),
    channel.skipped,
    channel.in_doubt,
    channel.dead,
    channel.suspended === null ? "" : `since ${channel.suspended.since}: ${channel.suspended.detail}`,
  ]);
}

function eventRow(event: Recorded): Cell[] {
  return [event.position, event.time, event.type, event.stream, event.meta.caller ?? ""];
}

type Cell = string | number;

function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const cells = (tag: string, values: readonly Cell[]) =>
    `<tr>${values.map((value) => `<${tag}>${escape(String(value))}</${tag}>`).join("")}</tr>`;
  return `<table><thead>${cells("th", head)}</thead><tbody>${rows.map((row) => cells("td", row)).join("\n")}</tbody></table>`;
}

function layout(title: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title><style>${STYLE}</style></head><body><main>${body}</main></body></html>`;
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;margin:0;color:#1c2430;background:#f6f7f9}
main{max-width:64rem;margin:2rem auto;padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.05rem;margin:1.8rem 0 .4rem}
table{border-collapse:collapse;width:100%;background:#fff}th,td{text-align:left;padding:.35rem .6rem;border:1px solid #dfe3e8;
overflow-wrap:anywhere}th{background:#eef1f4;font-weight:600}a{color:#0b62a8}input{padding:.3rem}button{padding:.3rem .8rem}`;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** As it was written: nothing of it is markup, or turns the direction of what stands beside it. */
function escape(text: string): string {
  return escapeControls(text).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
