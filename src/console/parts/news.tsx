/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { capitalize } from "../../history/event-sentences.ts";
import type { readNews } from "../../history/log-and-news-pages.ts";
import { nameRun } from "../../history/run-list-and-page.ts";
import { countInWords, grouped } from "../../platform/format-numbers-and-lists.ts";
import type { View } from "../page-context.ts";
import { addressWith, eventHref, runHref } from "../hrefs.ts";
import { EventList, EventSentence, findLook, Glyph, LinkName, Words } from "./event-sentence.tsx";
import { Badge, type BadgeState } from "./icon-and-badge.tsx";
import { A } from "./links-forms-and-tabs.tsx";
import { NumberTable } from "./table.tsx";
import { Time, toIso } from "./time.tsx";

type News = Awaited<ReturnType<typeof readNews>>;
type Day = News["open"][number];
type Line = NonNullable<Day["lines"]>[number];

/** Maximum number of links listed under a line about clicks. */
const LINKS_SHOWN = 10;

/** Shows the list of news: the newest days with their lines, and earlier days only with their sums. */
export function NewsDays({ view, news: { open, summed } }: { view: View<"runs">; news: News }): VNode {
  return (
    <>
      {open.map((day, at) => (
        <section class="card day">
          <header>
            <h2>
              <Time at={toIso(day.start)} as="day" />
            </h2>
            <p class="quiet">{day.sums}</p>
          </header>
          <NewsLines view={view} lines={day.lines ?? []} empty={at === 0 ? "Nothing yet." : "Nothing."} />
        </section>
      ))}
      {summed.length === 0 ? null : (
        <ol class="card days" aria-label="Earlier days">
          {summed.map((day) => (
            <li>
              <A href={`/activity?day=${day.date}`}>
                <Time at={toIso(day.start)} as="day" />
              </A>
              <span class="quiet">{day.sums}</span>
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

interface NewsLinesProps {
  readonly view: View<"runs">;
  readonly lines: readonly Line[];
  /** Words in place of an empty list. */
  readonly empty: string;
}

export function NewsLines({ view, lines, empty }: NewsLinesProps): VNode {
  if (lines.length === 0) return <p class="empty">{empty}</p>;
  return (
    <ol class="lines">
      {lines.map((line) => (
        <NewsRow view={view} line={line} />
      ))}
    </ol>
  );
}

/** Badge of each severity. Its shape and its word say the same as its colour. */
export const SEVERITY: Readonly<Record<NonNullable<Line["severity"]>, BadgeState>> = {
  critical: ["crit", "octagonAlert", "critical"],
  error: ["bad", "triangleAlert", "error"],
  warning: ["warn", "triangleAlert", "warning"],
};

function NewsRow({ view, line }: { readonly view: View<"runs">; readonly line: Line }): VNode {
  const { key, severity, words, events, links } = line;
  const [only] = events;
  const look = severity === undefined ? "" : ` sev-${SEVERITY[severity][0]}`;
  if (words === undefined) {
    return (
      <li class={`line${look}`}>
        <span class="t">
          <A href={eventHref(only?.position ?? 0)}>
            <Time at={toIso(line.to)} as="clock" />
          </A>
        </span>
        <Head line={line}>{only === undefined ? null : <EventSentence view={view} event={only} />}</Head>
      </li>
    );
  }
  const unfolds = events.length > 0 || links.length > 0;
  const head = (
    <>
      <Span line={line} />
      <Head line={line}>
        <span class="sentence">
          <b>
            <Words view={view} sentence={capitalize(words.lead)} isPlain={unfolds} />
          </b>
          <Words view={view} sentence={words.rest} isPlain={unfolds} />
          {words.aside === "" ? null : <span class="quiet"> · {words.aside}</span>}
        </span>
      </Head>
    </>
  );
  if (!unfolds) return <li class={`line${look}`}>{head}</li>;
  return (
    <li>
      <details id={key}>
        <summary class={`line${look}`}>{head}</summary>
        {links.length > 0 ? <Links links={links} /> : <EventList view={view} events={events} isOfDay />}
        <More view={view} line={line} />
      </details>
    </li>
  );
}

/** Shows icon, severity and sentence of a line. */
function Head({ line, children }: { readonly line: Line; readonly children: ComponentChildren }): VNode {
  const { severity, type, key } = line;
  return (
    <>
      <Glyph look={key.startsWith("burst") ? ["bot", "warn"] : findLook(type)} />
      <span class="say">
        {severity === undefined ? null : <Badge state={SEVERITY[severity]} />}
        {children}
      </span>
    </>
  );
}

/** Shows the times of the first and the last event of a line, or one time if both are in the same minute. */
function Span({ line: { from, to } }: { readonly line: Line }): VNode {
  const toMinute = (ms: number): string => toIso(ms).slice(0, "YYYY-MM-DDTHH:MM".length);
  return (
    <span class="t">
      {toMinute(from) === toMinute(to) ? null : (
        <span class="from">
          <Time at={toIso(from)} as="clock" /> –{" "}
        </span>
      )}
      <Time at={toIso(to)} as="clock" />
    </span>
  );
}

/** Lists by link the clicks that one line of news sums up. */
function Links({ links }: { readonly links: Line["links"] }): VNode {
  const isFetched = links.some(({ suspected }) => suspected > 0);
  return (
    <NumberTable
      heads={["Link", "People", "Bots", ...(isFetched ? ["X itself"] : [])]}
      rows={links
        .slice(0, LINKS_SHOWN)
        .map(({ link, clicks, bots, suspected }) => [
          <LinkName link={link} />,
          clicks - suspected,
          bots,
          ...(isFetched ? [suspected] : []),
        ])}
    />
  );
}

/** Link to the events that a line of news sums up, but does not list. Renders nothing if the line lists all of them. */
function More({ view, line }: { readonly view: View<"runs">; readonly line: Line }): VNode | null {
  const [href, words] = toMore(view, line) ?? [];
  if (href === undefined) return null;
  return (
    <p class="more">
      <A href={href}>{words}</A>
    </p>
  );
}

function toMore(view: View<"runs">, line: Line): readonly [href: string, words: string] | undefined {
  const { type, from, to, count, events, links, runId, channel, key } = line;
  const rest = count - events.length;
  if (runId !== undefined) {
    const more = rest > 0 ? `${grouped(rest)} more messages, in ` : "";
    return [runHref(runId), more + nameRun(view.state("runs"), runId)];
  }
  if (channel !== undefined) return [`/deliveries?channel=${channel}`, "Review in Deliveries"];
  if (links.length === 0 && rest <= 0) return undefined;
  if (key === "run-all" || key === "dry-all") return ["/runs", "All runs"];
  const span = { type, from: toIso(from), to: toIso(to) };
  const words = `All ${countInWords(count, links.length > 0 ? "click" : "event")}`;
  return [addressWith("/activity", new URLSearchParams(), span), words];
}
