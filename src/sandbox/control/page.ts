import { faultKindsOf, type FaultBoard, type FaultKind } from "../faults.ts";
import { escapeHtml, htmlPage } from "../html.ts";
import { NETWORKS, type Network } from "../network.ts";
import type { Recorded } from "../recorded.ts";
import { channelsOf, type ControlledWorld } from "../world.ts";
import type { Person } from "../x/people.ts";

const REFRESH_S = 5;

/** What arrived, who there is, and switches for faults: one page for people. */
export function overviewPage(sandbox: ControlledWorld): string {
  const { clock } = sandbox;
  const sections = [...arrivals(sandbox), faultSwitches(sandbox), people(sandbox), limits(sandbox)];
  const time = new Date(clock.now()).toISOString();
  const intro = `<h1>Sandbox</h1><p>What the networks would have received, newest first. Its time is ${time}.</p>`;
  return htmlPage("reachlog sandbox", intro + sections.join("\n"), REFRESH_S);
}

function arrivals(sandbox: ControlledWorld): string[] {
  const { x, meta, tally } = sandbox;
  const handle = (id: string): string => `@${x.people.get(id)?.username ?? id}`;
  return [
    table(
      `X: ${x.messages.total} direct messages (${tally.x.requests} requests)`,
      ["at", "from", "to", "text"],
      newest(x.messages.kept).map((dm) => [
        timeOf(dm.created_at),
        handle(dm.sender_id),
        handle(dm.recipient_id),
        dm.text,
      ]),
    ),
    table(
      `Meta: ${meta.events.total} events (${tally.meta.requests} requests)`,
      ["event", "id", "url"],
      newest(meta.events.kept).map((event) => [event.event_name, event.event_id ?? "", event.event_source_url ?? ""]),
    ),
    ...channelsOf(sandbox).flatMap(({ title, network, state }) => {
      const requests = tally[network].requests;
      const sent = messageTable(title, requests, state.messages);
      if (!("failures" in state)) return [sent];
      return [sent, messageTable(`${title}, accepted and not posted`, requests, state.failures)];
    }),
  ];
}

function messageTable(
  title: string,
  requests: number,
  { total, kept }: Recorded<{ readonly text: string; readonly at: number; readonly marks?: readonly string[] }>,
): string {
  const rows = newest(kept).map(({ at, text, marks = [] }) => [timeOf(at), text, marks.join(", ")]);
  return table(`${title}: ${total} messages (${requests} requests)`, ["at", "text", "formatted"], rows);
}

function timeOf(at: number): string {
  return new Date(at).toISOString().slice(11, 19);
}

function people({ x }: ControlledWorld): string {
  const rows = [...x.people.values()].map((person): Row => [
    `@${person.username}`,
    person.name,
    person.id,
    person.can_authorize === true ? "may authorize" : takes(person),
    String(x.accepted.get(person.id) ?? 0),
  ]);
  return table("People on X", ["handle", "name", "id", "our messages", "got"], rows);
}

function takes({ receives_your_dm, closed_when_sent }: Person): string {
  if (receives_your_dm === false) return "closed";
  return closed_when_sent === true ? "closed, but found out only when sent" : "open";
}

function limits(sandbox: ControlledWorld): string {
  const ofX = Object.entries(sandbox.x.limits).map(([name, value]) => [`X ${name}`, String(value)]);
  const others = channelsOf(sandbox).map(({ title, counts, state }) => [`${title}, ${counts}`, String(state.limit)]);
  return table("Limits", ["limit", "value"], [...ofX, ...others]);
}

/** For each network a button for each of its faults, which switches it on or off, and one for all off. */
function faultSwitches({ faults }: { faults: FaultBoard }): string {
  const rows = NETWORKS.map((network) => {
    const buttons = faultKindsOf(network).map((kind) => faultButton(faults, network, kind));
    return `<tr><th>${network}</th><td><form class="row" method="post" action="/_sandbox/faults">
<input type="hidden" name="network" value="${network}">${buttons.join("")}</form>${clearButton(network)}</td></tr>`;
  });
  return `<h2>Faults</h2><table>${rows.join("")}</table>`;
}

function faultButton(faults: FaultBoard, network: Network, kind: FaultKind): string {
  const active = faults.list().find((fault) => fault.network === network && fault.kind === kind);
  if (active === undefined) return `<button name="kind" value="${kind}">${kind}</button>`;
  const count = active.count === undefined ? "" : `, ${active.count} more`;
  const where = active.path === undefined ? "" : `, ${escapeHtml(active.path)}`;
  const off = `/_sandbox/faults/clear?network=${network}&amp;kind=${kind}`;
  return `<button class="on" formaction="${off}">${kind} (on${count}${where})</button>`;
}

function clearButton(network: Network): string {
  return `<form method="post" action="/_sandbox/faults/clear?network=${network}"><button>all off</button></form>`;
}

type Row = readonly string[];

/** Rows shown of each list. */
const SHOWN = 20;

function newest<T>(items: readonly T[]): readonly T[] {
  return items.slice(-SHOWN).toReversed();
}

/** A heading and its table; all of it is text, none of it HTML. */
function table(title: string, head: Row, rows: readonly Row[]): string {
  const cells = (tag: "th" | "td", row: Row): string =>
    `<tr>${row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("")}</tr>`;
  const body =
    rows.length === 0
      ? "<p>nothing yet</p>"
      : `<table>${cells("th", head)}${rows.map((row) => cells("td", row)).join("")}</table>`;
  return `<h2>${escapeHtml(title)}</h2>${body}`;
}
