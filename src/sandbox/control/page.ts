import { htmlPage } from "../html.ts";
import type { Arrivals } from "../journal.ts";
import type { Network } from "../network.ts";
import type { ControlledWorld } from "../world.ts";
import { faultSwitches } from "./fault-switches.ts";
import { newest, table, type Row } from "./table.ts";

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
  readonly messages: Arrivals<{ readonly text: string; readonly at: number; readonly marks?: readonly string[] }>;
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
