import { FAULT_KINDS } from "./faults.ts";
import { escapeHtml, htmlPage } from "./html.ts";
import { NETWORKS } from "./network.ts";
import type { Sandbox } from "./sandbox.ts";

/** Arrivals shown of each network. */
const SHOWN = 20;

/** What arrived, who there is, and switches for faults. */
export function overviewPage(sandbox: Sandbox): string {
  const { x, meta, slack, telegram } = sandbox;
  const name = (id: string): string => `@${x.people.get(id)?.username ?? id}`;
  return htmlPage(
    "reachlog sandbox",
    `<h1>Sandbox</h1><p>What the networks received. <a href="/">Refresh</a></p>
<h2>X: ${x.messages.length} direct messages</h2>
${table(
  ["from", "to", "text"],
  newest(x.messages).map((dm) => [name(dm.sender_id), name(dm.recipient_id), dm.text]),
)}
<h2>Meta: ${meta.events.total} events in ${meta.requests.total} requests</h2>
${table(
  ["event", "id", "url"],
  newest(meta.events.kept).map((event) => [event.event_name, event.event_id, event.event_source_url ?? ""]),
)}
<h2>Slack: ${slack.messages.total} messages</h2>
${table(
  ["text"],
  newest(slack.messages.kept).map(({ text }) => [text]),
)}
<h2>Telegram: ${telegram.messages.total} messages</h2>
${table(
  ["text"],
  newest(telegram.messages.kept).map(({ text }) => [text]),
)}
<h2>Faults</h2>${faultSwitches(sandbox)}
<h2>People on X</h2>
${table(
  ["handle", "name", "id", "takes our messages"],
  [...x.people.values()].map((person) => [
    `@${person.username}`,
    person.name,
    person.id,
    String(person.receives_your_dm),
  ]),
)}`,
  );
}

function faultSwitches({ faults }: Sandbox): string {
  const active = faults
    .list()
    .map(({ network, kind, count }) => `${network}: ${kind}${count === undefined ? "" : ` (${count} more)`}`);
  const options = NETWORKS.flatMap((network) => FAULT_KINDS.map((kind) => `<option>${network} ${kind}</option>`));
  return `<p>${active.length === 0 ? "none switched on" : escapeHtml(active.join(", "))}</p>
<form method="post" action="/_sandbox/page-faults"><select name="fault"><option value="">all off</option>${options.join("")}</select>
<button>Switch</button></form>`;
}

function newest<T>(items: readonly T[]): readonly T[] {
  return items.slice(-SHOWN).toReversed();
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (tag: string, row: readonly string[]): string =>
    `<tr>${row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("")}</tr>`;
  return `<table>${cells("th", head)}${rows.map((row) => cells("td", row)).join("")}</table>`;
}
