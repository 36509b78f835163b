import { join } from "node:path";
import { openSqliteStore } from "eventstore-lite";
import { atLeast, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench";
import { codec, makeEvent, type Event } from "../../events/event-types-and-codec.ts";
import { COUNTED_LINKS_MAX } from "../../projections/drop-oldest-links.ts";
import { STREAMS } from "../../src/log/event-log.ts";
import { CLICK } from "./sample-click.ts";
import { CLIENT, postClicks, type LoadResult } from "./post-clicks.ts";
import { startService } from "./start-service-process.ts";

/**
 * Measures the clicks a second on one link in a log with as many links as the service counts separately. Compares them
 * with a log that has this link alone.
 */
export const hotLink: Bench = async (options) => {
  const seconds = options.quick ? 2 : 4;
  const [many, one] = [join(options.directory, "many-links.sqlite"), join(options.directory, "one-link.sqlite")];
  // Both logs have the same number of events and differ only in the links.
  await writeClicks(many, (click) => (click === 0 ? {} : { short_code: `link-${click}` }));
  await writeClicks(one, () => ({}));
  const { among, alone } = await onServices(many, one, (manyLinks, oneLink) =>
    interleave(roundsOf(options), {
      among: () => postClicks(manyLinks, seconds),
      alone: () => postClicks(oneLink, seconds),
    }),
  );
  options.note(`the client is ${CLIENT}`);
  const links = COUNTED_LINKS_MAX.toLocaleString("en");
  const row = (what: string, unit: string, value: (load: LoadResult) => number, bar?: ReturnType<typeof atLeast>) =>
    compare(what, unit, among.map(value), alone.map(value), bar);
  return [
    row(`hot-link, durable 202s on one of ${links} links; on one alone`, "/s", (load) => load.perSecond, atLeast(0.9)),
    row("hot-link, p99", "µs", (load) => load.p99Ms * 1000),
  ];
};

/**
 * Writes as many clicks as the service counts links separately. Each click is on the link that is posted later, unless
 * `other` names another link.
 */
async function writeClicks(file: string, other: (click: number) => { readonly short_code?: string }): Promise<void> {
  const posted = JSON.parse(CLICK) as { domain: string; short_code: string };
  await using store = await openSqliteStore<Event>({ file, codec });
  const appends = Array.from({ length: COUNTED_LINKS_MAX }, (_, click) => {
    const data = { event: "click", original_url: "https://shop.example/", ...posted, ...other(click) };
    const event = makeEvent("LinkClicked", Bun.randomUUIDv7(), { ...data, bot: false, channels: [] }, {});
    return store.append(STREAMS.link(data.domain, data.short_code), [event]);
  });
  await Promise.all(appends);
}

async function onServices<Result>(
  one: string,
  other: string,
  work: (one: string, other: string) => Promise<Result>,
): Promise<Result> {
  await using first = await startService(one);
  await using second = await startService(other);
  return await work(first.url, second.url);
}
