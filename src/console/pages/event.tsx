/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Recorded } from "../../../events/event-types-and-codec.ts";
import { findEventAt, readEventPage } from "../../history/log-and-news-pages.ts";
import { formatCaller, spaced } from "../../history/event-sentences.ts";
import { grouped } from "../../platform/format-numbers-and-lists.ts";
import { ConsoleDocument, Head, Section } from "../document.tsx";
import { eventHref } from "../hrefs.ts";
import { consolePage, readText, type DisclosingPage, type View } from "../page-context.ts";
import { EventList, EventSentence } from "../parts/event-sentence.tsx";
import { A } from "../parts/links-forms-and-tabs.tsx";
import { StateChanges } from "../parts/event-state-changes.tsx";
import { type NamedValue, NamedValues } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

/**
 * Page of one event with all its data, the outcomes of its dispatches, and the hash of the event before it (64 zeros
 * for position 1).
 */
export const eventPage = consolePage({
  async reads({ parameters, ...moment }) {
    const { data = {} } = (await findEventAt(moment, parameters["position"] ?? "")) ?? {};
    return "recipient" in data ? ["account", "contacts", "runs"] : ["account", "runs"];
  },
  render: renderEvent,
});

async function renderEvent(view: View<"account" | "contacts" | "runs">): Promise<DisclosingPage | undefined> {
  const found = await readEventPage(view, view.parameters["position"] ?? "", readText(view, "projection"));
  if (found === undefined) return undefined;
  const { event, recipient, previousHash, causes, effects, outcomes, change } = found;
  const { position, type, stream, version, time, id, hash, meta, data } = found.shown;
  const facts: readonly NamedValue[] = [
    ["time", <code>{time}</code>],
    ["stream", <bdi>{`${stream}, version ${version}`}</bdi>],
    ["id", <code>{id}</code>],
    ["caller", <bdi>{meta.caller === undefined ? "not recorded" : formatCaller(meta.caller)}</bdi>],
    ["request id", <code>{meta.request_id ?? "none"}</code>],
    ["trace", <Trace traceparent={meta.traceparent} url={view.settings.traceUrl} />],
    ["hash", <code>{hash}</code>],
    ["previous hash", <code>{previousHash}</code>],
  ];
  const page = (
    <ConsoleDocument title={`Event ${position}`} path="/activity" view={view}>
      <Head
        title={
          <>
            {spaced(type)} <small>at position {grouped(position)}</small>
          </>
        }
        says={<Time at={time} as="full" />}
      />
      <EventSentence view={view} event={event} isWhole />
      <NamedValues of={facts} />
      <Cited view={view} id="causes" title="What caused it" events={causes} />
      <Cited view={view} id="effects" title="What it caused" events={effects} />
      <Outcomes view={view} outcomes={outcomes} />
      <StateChanges view={view} position={position} change={change} />
      <p>
        <A href={`/api/audit/proof/${position}`} download>
          Prove it
        </A>
        .{" "}
        <span class="quiet">
          A proof for a reader without the log, who checks it with{" "}
          <code>reachlog audit check FILE --public-key KEY</code>; <code>reachlog audit head --public-key</code> prints
          the key. It proves these bytes, in which personal data is encrypted, so it stays valid after an erasure.
        </span>
      </p>
      <h2>Data</h2>
      {data === event.data ? null : (
        <p class="quiet">
          <code>hidden-…</code> stands for the code of the recipient's own link. The page hides it, because any visitor
          of that link counts as the recipient.
        </p>
      )}
      <pre tabIndex={0}>{JSON.stringify(data, null, 2)}</pre>
      <p>
        {position > 1 ? <A href={eventHref(position - 1)}>Previous</A> : null}{" "}
        {position < view.position ? <A href={eventHref(position + 1)}>Next</A> : null}{" "}
        <A href={`/activity?${new URLSearchParams({ stream })}`}>Events of this stream</A>
      </p>
    </ConsoleDocument>
  );
  return { page, disclosed: recipient === undefined ? {} : { recipient } };
}

/**
 * Shows the trace of an event, from its `traceparent` (W3C: version, id, span, flags), with a link to the collected
 * trace if TRACE_URL is set.
 */
function Trace({ traceparent, url }: { readonly traceparent: string | undefined; url: string | undefined }): VNode {
  const [, id] = /^[\da-f]{2}-([\da-f]{32})-/.exec(traceparent ?? "") ?? [];
  const shown = <code>{traceparent ?? "none"}</code>;
  return id === undefined || url === undefined ? shown : <A href={url.replace("{id}", id)}>{shown}</A>;
}

interface CitedProps {
  readonly view: View<"runs">;
  readonly id: string;
  readonly title: string;
  readonly events: readonly Recorded[];
}

/** Section that lists related events under a title. Renders nothing if there are none. */
function Cited({ view, id, title, events }: CitedProps): VNode | null {
  if (events.length === 0) return null;
  return (
    <Section id={id} title={title}>
      <EventList view={view} events={events} />
    </Section>
  );
}

type Outcomes = NonNullable<Awaited<ReturnType<typeof readEventPage>>>["outcomes"];

/**
 * Shows the outcomes of an event's dispatches, channel by channel. Renders nothing for an event that requested none.
 */
function Outcomes({ view, outcomes }: { view: View<"runs">; outcomes: Outcomes }): VNode | null {
  if (outcomes.length === 0) return null;
  return (
    <Section id="outcomes" title="Outcomes">
      {outcomes.map(({ channel, events, isWhole }) => (
        <>
          <h3>{channel}</h3>
          {events.length > 0 ? <EventList view={view} events={events} /> : null}
          {isWhole && events.length === 0 ? <p class="empty">No attempt is recorded yet.</p> : null}
          {isWhole ? null : (
            <p>
              This channel was far behind: later attempts and decisions are in{" "}
              <A href="/activity?show=deliveries">its events</A>.
            </p>
          )}
        </>
      ))}
    </Section>
  );
}
