import { htmlPage } from "../html.ts";
import type { Sandbox } from "../sandbox.ts";
import { faultSwitches } from "./fault-switches.ts";
import { newest, table, type Row } from "./table.ts";

const REFRESH_S = 5;

/** What arrived, who there is, and switches for faults: one page for people. */
export function overviewPage(sandbox: Sandbox): string {
  const { clock } = sandbox;
  const sections = [...arrivals(sandbox), faultSwitches(sandbox), people(sandbox), limits(sandbox)];
  const time = new Date(clock.now()).toISOString();
  const intro = `<h1>Sandbox</h1><p>What X, Meta, Slack and Telegram would have received, newest first. Its time is ${time}.</p>`;
  return htmlPage("reachlog sandbox", intro + sections.join("\n"), REFRESH_S);
}

function arrivals({ x, meta, slack, telegram, tally }: Sandbox): string[] {
  const handle = (id: string): string => `@${x.people.get(id)?.username ?? id}`;
  const at = (time: number): string => new Date(time).toISOString().slice(11, 19);
  const messages = (kept: readonly { text: string; at: number }[]): Row[] =>
    newest(kept).map((message) => [at(message.at), message.text]);
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
    table(
      `Slack: ${slack.messages.total} messages (${tally.slack.requests} requests)`,
      ["at", "text"],
      messages(slack.messages.kept),
    ),
    table(
      `Telegram: ${telegram.messages.total} messages (${tally.telegram.requests} requests)`,
      ["at", "text"],
      messages(telegram.messages.kept),
    ),
  ];
}

function people({ x }: Sandbox): string {
  const rows = [...x.people.values()].map((person): Row => [
    `@${person.username}`,
    person.name,
    person.id,
    person.can_authorize === true ? "may authorize" : takes(person),
    String(x.accepted.get(person.id) ?? 0),
  ]);
  return table("People on X", ["handle", "name", "id", "our messages", "got"], rows);
}

function takes({
  receives_your_dm,
  closed_when_sent,
}: {
  receives_your_dm?: boolean;
  closed_when_sent?: boolean;
}): string {
  if (receives_your_dm === false) return "closed";
  return closed_when_sent === true ? "closed, but told only when sent" : "open";
}

function limits({ x, slack, telegram }: Sandbox): string {
  return table(
    "Limits",
    ["limit", "value"],
    [
      ...Object.entries(x.limits).map(([name, value]): Row => [`X ${name}`, String(value)]),
      ["Slack, messages in 5 s", String(slack.limit)],
      ["Telegram, messages in 5 s; in a group four times as many in a minute", String(telegram.limit)],
    ],
  );
}
