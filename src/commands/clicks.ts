import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { clicks as projection, type Clicks, type LinkClicks } from "../../projections/clicks.ts";
import { configOf, EXIT, parse, type Command } from "./command.ts";
import { linkOf, streamOfLink } from "./link.ts";
import { openExistingLog } from "./log-session.ts";
import { AS_OF_HELP, asOf, asOfJson, foldAsOf, parseMoment, placeOf, type Place } from "./moment.ts";
import { printable, table } from "./table.ts";

export const clicks: Command = {
  summary: "show the clicks of all links or of one, also of an earlier moment",
  help: `reachlog clicks [DOMAIN/SHORT_CODE] [--as-of TIME|POSITION] [--json]

Clicks of people and of bots, the links with most clicks of people first. Of many
links only those clicked last are told apart; a link that is asked for by name is
counted from all of its clicks.

${AS_OF_HELP}  --json      one JSON object
`,
  async run(args, terminal) {
    const { values, positionals } = parse(args, {
      "as-of": { type: "string" },
      json: { type: "boolean", default: false },
    });
    const config = configOf(terminal);
    const moment = parseMoment(values["as-of"], config.outreach.timezone);
    await using store = await openExistingLog(config);
    const [wanted] = positionals;
    if (wanted === undefined) {
      const folded = await foldAsOf(terminal, store, ["clicks"], moment);
      terminal.out(values.json ? allAsJson(folded.states.clicks, folded) : allAsText(folded.states.clicks, folded));
      return EXIT.ok;
    }
    const place = await placeOf(store, moment);
    const link = linkOf(wanted);
    const counted = (await countLink(store, link, place)).links.get(link);
    if (values.json && counted !== undefined) {
      terminal.out(`${JSON.stringify({ link, ...counted, as_of: asOfJson(place) })}\n`);
    } else if (counted !== undefined) {
      terminal.out(`${table(HEAD, [row(link, counted)])}(${asOf(place)})\n`);
    } else {
      terminal.err(`no click of ${printable(link)} is in the log (${asOf(place)})\n`);
      return EXIT.fault;
    }
    return EXIT.ok;
  },
};

const HEAD = ["link", "people", "bots", "first", "last"];

/** Counts one link from its own stream, however many others there are. */
async function countLink(store: EventStore<Event>, link: string, { position }: Place): Promise<Clicks> {
  let state = projection.initial();
  for await (const batch of store.readFolded({ stream: streamOfLink(link), to: position })) {
    for (const event of batch) state = projection.evolve(state, event);
  }
  return state;
}

function allAsJson({ total, bots, others, links }: Clicks, place: Place): string {
  const listed = sorted(links).map(([link, counted]) => ({ link, ...counted }));
  return `${JSON.stringify({ clicks: total, bots, links: listed, others, as_of: asOfJson(place) })}\n`;
}

function allAsText({ total, bots, others, links }: Clicks, place: Place): string {
  const rows = sorted(links).map(([link, counted]) => row(link, counted));
  if (others.clicks + others.bots > 0) rows.push(["(links no longer told apart)", others.clicks, others.bots, "", ""]);
  return `${table(HEAD, [...rows, ["total", total, bots, "", ""]])}(${asOf(place)})\n`;
}

/** Most clicks of people first; of equals the one clicked last. */
function sorted(links: Clicks["links"]): [string, LinkClicks][] {
  return [...links].toReversed().sort(([, a], [, b]) => b.clicks - a.clicks || b.bots - a.bots);
}

function row(link: string, { clicks: people, bots, first, last }: LinkClicks): (string | number)[] {
  return [link, people, bots, first, last];
}
