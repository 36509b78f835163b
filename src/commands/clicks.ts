import type { EventType, Folded, LogStore } from "../../events/catalog.ts";
import type { States } from "../../projections/all.ts";
import { byLastClick } from "../../projections/recent-links.ts";
import { createStates } from "../../projections/states.ts";
import { suspected, type SuspectedCounts } from "../../projections/suspected.ts";
import { streamsOfLink } from "../history/history.ts";
import { Command, JSON_OPTION, type MakeCommand, parseLink } from "./shared/command.ts";
import { answer, fail, printable, table } from "./shared/terminal.ts";
import type { Place } from "../projector/parse-moment.ts";
import { AS_OF_OPTION, describeMoment, openAtMoment, toAsOfJson } from "./shared/moment.ts";

export const clicks: MakeCommand = (terminal) =>
  new Command("clicks")
    .summary("show the clicks of all links or of one")
    .description(
      `Clicks of people and of bots, the links with most clicks of people first. Of many
links only those clicked last are told apart; a link that is asked for by name is
counted from all of its clicks.

suspected: so many of the clicks of people are likely X's own. It fetches each
link that a direct message holds, also under the names of ordinary browsers:
clicks within seconds of such a message that come close to each other are taken
for these.`,
    )
    .argument("[link]", "one link, as domain/short_code")
    .option(...AS_OF_OPTION)
    .option(...JSON_OPTION)
    .examples("reachlog clicks go.example/welcome --as-of 2026-11-21")
    .action(async (wanted, { asOf: at, json }) => {
      await using asked = await openAtMoment(terminal, at);
      if (wanted === undefined) {
        const folded = await asked.fold(...NAMES);
        return answer(terminal, json, allAsJson(folded.states, folded), allAsText(folded.states, folded));
      }
      const link = parseLink(wanted);
      const { states, ...place } = await asked.fold("clicks");
      const streams = streamsOfLink(states.clicks, link);
      const counted = listLinks(await countLink(asked.store, streams, place)).find((one) => one.link === link);
      if (counted === undefined) {
        return fail(terminal, `no click of ${printable(link)} is in the log (${describeMoment(place)})`);
      }
      const text = `${table(HEAD, [row(counted)])}(${describeMoment(place)})\n`;
      return answer(terminal, json, { ...counted, as_of: toAsOfJson(place) }, text);
    });

const NAMES = ["clicks", "suspected"] as const;

const HEAD = ["link", "people", "suspected", "bots", "first", "last"];

type Counted = Pick<States, (typeof NAMES)[number]>;

/** Events other than clicks that mark clicks as suspected. */
const MESSAGES: readonly EventType[] = suspected.types.filter((type) => type !== "LinkClicked");

/** Counts one link from its own streams, however many others there are, and the messages that may explain clicks. */
async function countLink(store: LogStore, streams: readonly string[], { position }: Place): Promise<Counted> {
  const states = createStates(NAMES);
  const queries = [...streams.map((stream) => ({ stream })), { types: MESSAGES }];
  const events = queries.map((query) => flatten(store.readFolded({ ...query, to: position })));
  for await (const event of mergeInLogOrder(events)) states.evolve(event);
  return states.all();
}

type Events = AsyncGenerator<Folded, undefined, void>;

async function* flatten(batches: AsyncIterable<readonly Folded[]>): Events {
  for await (const batch of batches) yield* batch;
  return undefined;
}

/** No event is in two of the sources. */
async function* mergeInLogOrder(sources: readonly Events[]) {
  const heads = await Promise.all(sources.map(async (events) => ({ events, next: (await events.next()).value })));
  for (;;) {
    let first: (typeof heads)[number] | undefined;
    for (const head of heads) if (nextPosition(head) < nextPosition(first)) first = head;
    if (first?.next === undefined) return;
    yield first.next;
    first.next = (await first.events.next()).value;
  }
}

function nextPosition(head: { readonly next: Folded | undefined } | undefined): number {
  return head?.next?.position ?? Infinity;
}

function allAsJson(counted: Counted, place: Place): object {
  const { total, bots } = counted.clicks;
  const { all, others } = counted.suspected;
  const links = listLinks(counted);
  return { clicks: total, bots, suspected: all.suspected, links, others, as_of: toAsOfJson(place) };
}

function allAsText(counted: Counted, place: Place): string {
  const rows = listLinks(counted).map(row);
  const { all, others } = counted.suspected;
  if (others.clicks + others.bots > 0) rows.push(formatSums("(links no longer told apart)", others));
  return `${table(HEAD, [...rows, formatSums("total", all)])}(${describeMoment(place)})\n`;
}

type LinkCounts = ReturnType<typeof listLinks>[number];

/** Most clicks of people first; of equals the one clicked last. `suspected` of its `clicks`. */
function listLinks({ clicks: { links }, suspected }: Counted) {
  return byLastClick(links)
    .map(([link, { clicks: people, bots, first, last }]) => {
      return { link, clicks: people, bots, suspected: suspected.links.get(link)?.suspected ?? 0, first, last };
    })
    .sort((a, b) => b.clicks - a.clicks || b.bots - a.bots);
}

function row({ link, clicks: people, suspected, bots, first, last }: LinkCounts): (string | number)[] {
  return [link, people, suspected, bots, first, last];
}

function formatSums(what: string, { clicks: people, suspected, bots }: SuspectedCounts): (string | number)[] {
  return [what, people, suspected, bots, "", ""];
}
