import { faultKindsOf, type FaultBoard, type FaultKind } from "../faults.ts";
import { escapeHtml, htmlPage } from "../html.ts";
import { NETWORKS, type Network } from "../network.ts";
import type { Recorded } from "../recorded.ts";
import type { ControlledWorld } from "../world.ts";
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
  const at = (time: number): string => new Date(time).toISOString().slice(11, 19);
  return [
    table(
      `X: ${x.messages.total} direct messages (${tally.x.requests} requests)`,
      ["at", "from", "to", "text"],
      newest(x.messages.kept).map((dm) => [at(dm.created_at), handle(dm.sender_id), handle(dm.recipient_id), dm.text]),
    ),
    table(
      `Meta: ${meta.events.total} events (${tally.meta.requests} requests)`,
      ["event", "id", "url"],
      newest(meta.events.kept).map((event) => [event.event_name, event.event_id ?? "", event.event_source_url ?? ""]),
    ),
    ...channelsOf(sandbox).map(({ title, network, messages }) =>
      table(
        `${title}: ${messages.total} messages (${tally[network].requests} requests)`,
        ["at", "text", "formatted"],
        newest(messages.kept).map((message) => [at(message.at), message.text, message.marks?.join(", ") ?? ""]),
      ),
    ),
  ];
}

interface ChannelSection {
  readonly title: string;
  readonly network: Network;
  readonly messages: Recorded<{ readonly text: string; readonly at: number; readonly marks?: readonly string[] }>;
}

function channelsOf(sandbox: ControlledWorld): ChannelSection[] {
  return [
    { title: "Slack", network: "slack", messages: sandbox.slack.messages },
    { title: "Discord", network: "discord", messages: sandbox.discord.messages },
    { title: "Google Chat", network: "google_chat", messages: sandbox.googleChat.messages },
    { title: "Teams", network: "teams", messages: sandbox.teams.messages },
    { title: "Teams, accepted and not posted", network: "teams", messages: sandbox.teams.failures },
    { title: "Telegram", network: "telegram", messages: sandbox.telegram.messages },
    { title: "LINE", network: "line", messages: sandbox.line.messages },
    { title: "WhatsApp", network: "whatsapp", messages: sandbox.whatsapp.messages },
  ];
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

function limits({ x, slack, discord, googleChat, teams, telegram, line, whatsapp }: ControlledWorld): string {
  return table(
    "Limits",
    ["limit", "value"],
    [
      ...Object.entries(x.limits).map(([name, value]): Row => [`X ${name}`, String(value)]),
      ["Slack, messages in 5 s", String(slack.limit)],
      ["Discord, messages in 2 s", String(discord.limit)],
      ["Google Chat, messages in a minute", String(googleChat.limit)],
      ["Teams, requests in a second", String(teams.limit)],
      ["Telegram, messages in 5 s; in a group four times as many in a minute", String(telegram.limit)],
      ["LINE, requests in a second", String(line.limit)],
      ["WhatsApp, messages in a second", String(whatsapp.limit)],
    ],
  );
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
