/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { Recorded } from "../../../events/catalog.ts";
import { hideCodes } from "../../networks/hide-codes.ts";
import { type Contact, findContact, toRecipient } from "../../../projections/contacts.ts";
import { findTracked } from "../../../projections/results.ts";
import { linksOf } from "../../../projections/sent-links.ts";
import { describeConsent } from "../../history/words/outreach.ts";
import { eventsAt } from "../../log/event-log.ts";
import { formatDuration } from "../../platform/format-duration.ts";
import { discloseRecipient } from "../../privacy/read-audit.ts";
import { eventHref, recipientHref, runHref } from "../hrefs.ts";
import { grouped } from "../../platform/counts-and-lists.ts";
import { ConsoleDocument, Section } from "../document.tsx";
import { findGrounds } from "../parts/find-causes.ts";
import { EventList, EventSentence, formatRun, LinkName, Words } from "../parts/events.tsx";
import { RecipientActions } from "../parts/recipient-actions.tsx";
import { breakable, type Cell, type NamedValue, NamedValues, numbers, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { effectiveBasis, isFrom, ORIGINS } from "../people-filter.ts";
import { consolePage, type DisclosingPage, readNumber, type View } from "../page-context.ts";
import { BASIS_WORDS, formatContactName, ORIGIN_WORDS, StatusBadge } from "./people.tsx";
import { A } from "../parts/link.tsx";

/** Events of one page; most recipients have fewer. */
const EVENTS_SHOWN = 200;

/** Newest reads of the recipient's data that the page shows: each day that callers work with the console adds some. */
const READS_SHOWN = 20;

/** Messages shown with their whole text, of up to 10,000 characters each. */
const MESSAGES_SHOWN = 10;

type Attempt = Recorded<"DirectMessageAttempted">;

/** One recipient: the status, the grounds for writing, the exact texts, and all events about them. */
export const recipientPage = consolePage({
  reads: ["account", "contacts", "referrers", "results", "runs", "suspected"],
  render: renderRecipient,
});

async function renderRecipient(
  view: View<"account" | "contacts" | "referrers" | "results" | "runs" | "suspected">,
): Promise<DisclosingPage> {
  const asked = view.parameters["id"] ?? "";
  const contacts = view.state("contacts");
  const username = asked.replace(/^@/, "");
  const contact = findContact(contacts, { id: asked }) ?? findContact(contacts, { username });
  if (contact === undefined) return unnamedPage(view, asked);
  const before = readNumber(view, "before");
  const positions = contact.positions.filter((position) => before === undefined || position < before);
  const shown = positions.slice(-EVENTS_SHOWN);
  const events = (await Array.fromAsync(eventsAt(view.store, shown))).toReversed();
  const attempts = events.filter((event): event is Attempt => event.type === "DirectMessageAttempted").map(hideCodes);
  const page = (
    <ConsoleDocument title={formatContactName(contact)} path="/people" view={view}>
      <h1 class="breakable">
        <bdi>{formatContactName(contact)}</bdi> <StatusBadge contact={contact} />
      </h1>
      <div class="columns">
        {before === undefined ? <Case view={view} contact={contact} attempts={attempts} events={events} /> : null}
        <div class="stack">
          <ContactFacts contact={contact} events={events} />
          <RecipientActions view={view} contact={contact} back={recipientHref(contact) ?? "/people"} />
        </div>
      </div>
      {before === undefined ? (
        <>
          <Messages view={view} attempts={attempts.slice(1)} events={events} />
          <TheirLinks view={view} contact={contact} attempts={attempts} events={events} />
        </>
      ) : null}
      <Section id="history" title="What happened">
        <EventList view={view} events={events} />
        {positions.length > shown.length ? (
          <p>
            <A href={`/people/${encodeURIComponent(asked)}?before=${shown[0]}`}>
              {grouped(positions.length - shown.length)} older events
            </A>
          </p>
        ) : null}
      </Section>
      {await renderReads(view, contact)}
    </ConsoleDocument>
  );
  return { page, disclosed: discloseRecipient(toRecipient(contact)) };
}

/** The newest reads of the recipient's data. Renders nothing if no read is recorded. */
async function renderReads(view: View<"runs">, { reads = [] }: Contact): Promise<VNode | null> {
  if (reads.length === 0) return null;
  const events = (await Array.fromAsync(eventsAt(view.store, reads.slice(-READS_SHOWN)))).toReversed();
  return (
    <Section id="reads" title="Who read about them">
      <EventList view={view} events={events} />
      {reads.length > events.length ? (
        <p>
          The newest {READS_SHOWN} of {grouped(reads.length)}; <code>reachlog audit show</code> has all of them.
        </p>
      ) : null}
    </Section>
  );
}

/** True if the log holds only a hash of the name, because the recipient was erased, or suppressed by a hash. */
function isHashed(view: View<"contacts">, asked: string): boolean {
  const { hashes } = view.state("contacts");
  const names = view.settings.hashesOf({ id: asked, username: asked.replace(/^@/, "") });
  return names.some((name) => hashes.has(name));
}

/** The page of a name that the log knows only by its hash, or not at all. */
function unnamedPage(view: View<"account" | "contacts">, asked: string): DisclosingPage {
  const name = <bdi class="breakable">{asked}</bdi>;
  const isMissing = !isHashed(view, asked);
  const search = asked.replace(/^@/, "");
  const page = (
    <ConsoleDocument title="Person" path="/people" view={view}>
      <h1>{isMissing ? "Unknown" : "Erased or hashed"}</h1>
      {isMissing ? (
        <>
          <p class="empty">The log has no person called {name}.</p>
          <p>
            <A href={`/people?${new URLSearchParams({ search })}`}>Search people for a part of this name</A>, or import
            them on the page <A href="/people">People</A>.
          </p>
        </>
      ) : (
        <p class="empty">
          The person called {name} was erased, or suppressed by a hash alone. The log does not say who they are, and no
          run contacts them.
        </p>
      )}
    </ConsoleDocument>
  );
  return { page, isMissing };
}

interface CaseProps {
  readonly view: View<"referrers" | "results" | "runs" | "suspected">;
  readonly contact: Contact;
  /** The newest first, as in `events`. */
  readonly attempts: readonly Attempt[];
  readonly events: readonly Recorded[];
}

/** Answers why they got their newest message, or why they got none: each step with the event that proves it. */
function Case({ view, contact, attempts, events }: CaseProps): VNode {
  const [attempt] = attempts;
  const name = contact.username === undefined ? "they" : `@${contact.username}`;
  const skipped = attempt === undefined ? events.find(({ type }) => type === "DirectMessageSkipped") : undefined;
  const replied = events.find(
    ({ type, position }) => type === "DirectMessageReceived" && position > (attempt?.position ?? 0),
  );
  const suppressed = events.find(({ type }) => type === "RecipientSuppressed");
  const held = contact.held ? events.find(({ type }) => type === "RecipientHeld") : undefined;
  const clicks = describeClicks(view, contact);
  return (
    <section class="card" aria-labelledby="case">
      <h2 id="case">
        Why did <bdi>{name}</bdi> get {attempt === undefined ? "no" : "a"} message?
      </h2>
      <ol class="reasons">
        <Reason title="Consent" proof={findGrounds(effectiveBasis(contact), events)}>
          <Words view={view} sentence={describeConsent(contact)} />
        </Reason>
        {attempt === undefined ? null : (
          <Reason title="Message" proof={attempt}>
            Variant <VariantName attempt={attempt} />, in{" "}
            <A href={runHref(attempt.data.run_id)}>run {formatRun(view, attempt.data.run_id)}</A>,{" "}
            <Time at={attempt.time} />: {describeOutcome(attempt, events)}.
            <pre class="bubble" tabIndex={0}>
              <bdi>{attempt.data.text}</bdi>
            </pre>
          </Reason>
        )}
        <EventReason view={view} title="Skipped" event={skipped} />
        {attempt !== undefined || skipped !== undefined ? null : (
          <Reason title="Not contacted">No run has reached them yet.</Reason>
        )}
        {clicks === "" ? null : <Reason title="Clicks">{clicks}.</Reason>}
        <EventReason view={view} title="Reply" event={replied} />
        <EventReason view={view} title="Held" event={held} />
        <EventReason view={view} title="Suppressed" event={suppressed} />
      </ol>
    </section>
  );
}

/** Renders nothing if there is no such event. */
function EventReason({
  view,
  title,
  event,
}: {
  view: View<"runs">;
  title: string;
  event: Recorded | undefined;
}): VNode | null {
  if (event === undefined) return null;
  return (
    <Reason title={title} proof={event}>
      <EventSentence view={view} event={event} />
    </Reason>
  );
}

interface ReasonProps {
  readonly title: string;
  /** The event that proves the reason. */
  readonly proof?: Recorded | undefined;
  readonly children: ComponentChildren;
}

function Reason({ title, proof, children }: ReasonProps): VNode {
  return (
    <li>
      <h3>{title}</h3>
      <div class="breakable">{children}</div>
      {proof === undefined ? null : (
        <p class="quiet">
          <A href={eventHref(proof.position)}>Event {grouped(proof.position)}</A> ·{" "}
          <A href={`/api/audit/proof/${proof.position}`} download>
            Proof
          </A>
        </p>
      )}
    </li>
  );
}

function ContactFacts({ contact, events }: Pick<CaseProps, "contact" | "events">): VNode {
  const { id, username, timezone, variant, received, replied, skipped, fields, attempted_at } = contact;
  const basis = effectiveBasis(contact);
  const proof = findGrounds(basis, events);
  const grounds = (
    <>
      {BASIS_WORDS[basis]}
      {proof && ", by event "}
      {proof && <A href={eventHref(proof.position)}>{grouped(proof.position)}</A>}
    </>
  );
  const facts: readonly NamedValue[] = [
    ["skipped for", skipped.join(", ").replaceAll("_", " ")],
    ["grounds for writing", grounds],
    [
      "source",
      ORIGINS.filter((origin) => isFrom(contact, origin))
        .map((origin) => ORIGIN_WORDS[origin])
        .join(", "),
    ],
    ["handle", username === undefined ? "" : <bdi>@{username}</bdi>],
    ["time zone", timezone === undefined ? "" : <bdi>{timezone}</bdi>],
    ["id", id === undefined ? "not known yet" : <code>{id}</code>],
    ["last message", attempted_at === undefined ? "none" : <Time at={attempted_at} />],
    ["variant", variant === undefined ? "" : <bdi>{variant}</bdi>],
    ["messages from them", replied ? "after ours" : received ? "before ours" : "none was read"],
    ...Object.entries(fields).map(([name, value]) => [name, <bdi>{value}</bdi>] as const),
  ];
  return <NamedValues of={facts.filter(([, value]) => value !== "")} />;
}

/** Describes a recipient's clicks on personal links. Empty if they got none, or no longer grant tracking. */
function describeClicks(view: View<"results">, contact: Contact): string {
  const tracked = findTracked(view.state("results"), contact)?.tracked;
  if (tracked == null) return "";
  const { clicks, suspected, first, sent } = tracked;
  const after =
    first === null ? "" : `, the first ${formatDuration(Math.round((first - sent) / 1_000))} after the message`;
  const more = suspected === 0 ? "" : `; ${grouped(suspected)} more may be X itself, and are not counted as theirs`;
  return `${grouped(clicks)} on links of their own${after}${more}`;
}

/** The earlier messages to the recipient, with their exact texts. The texts of replies are not kept. */
function Messages({ view, attempts, events }: Omit<CaseProps, "contact">): VNode | null {
  if (attempts.length === 0) return null;
  return (
    <Section id="messages" title="Earlier messages to them">
      {attempts.slice(0, MESSAGES_SHOWN).map((attempt) => (
        <>
          <p>
            <Time at={attempt.time} />: variant <VariantName attempt={attempt} />, in{" "}
            <A href={runHref(attempt.data.run_id)}>run {formatRun(view, attempt.data.run_id)}</A>;{" "}
            {describeOutcome(attempt, events)}.
          </p>
          <pre tabIndex={0}>
            <bdi>{attempt.data.text}</bdi>
          </pre>
        </>
      ))}
      {attempts.length > MESSAGES_SHOWN ? <p>The newest {MESSAGES_SHOWN}; the others are below.</p> : null}
    </Section>
  );
}

/** `A of Autumn invite`, or `A` if the template has no name. */
function VariantName({ attempt: { data } }: { readonly attempt: Attempt }): VNode {
  const { variant, template_name } = data;
  return (
    <>
      <bdi>{variant}</bdi>
      {template_name === undefined ? null : " of "}
      {template_name === undefined ? null : <bdi>{template_name}</bdi>}
    </>
  );
}

/** The outcome of a message in words. `events` has the newest first. */
function describeOutcome({ data: { attempt_id } }: Attempt, events: readonly Recorded[]): string {
  const last = events.find(({ data }) => "attempt_id" in data && data.attempt_id === attempt_id);
  switch (last?.type) {
    case "DirectMessageSent":
      return "sent";
    case "DirectMessageFailed":
      return `failed, ${last.data.reason.replaceAll("_", " ")}`;
    case "DirectMessageInDoubt":
      return "in doubt";
    default:
      return "its outcome is not known yet";
  }
}

/**
 * The links of the messages to a recipient, with the clicks of all who got them. If a link was in one message
 * only, all clicks are this recipient's, and shown only while they grant tracking.
 */
function TheirLinks({ view, contact, attempts, events }: CaseProps): VNode | null {
  const sent = attempts.filter((attempt) => describeOutcome(attempt, events) === "sent");
  const isTracked = contact.tracking.status === "granted";
  const links = [...new Set(sent.flatMap(({ data }) => linksOf(data)))];
  if (links.length === 0) return null;
  return (
    <Section id="their-links" title="Links sent to them">
      <Table
        label="Clicks of the links sent to them"
        columns={[...breakable("link"), "sent to", ...numbers("people", "suspected", "bots")]}
        rows={links.map((link) => toCells(view, link, isTracked))}
      />
    </Section>
  );
}

function toCells(view: View<"referrers" | "suspected">, link: string, isTracked: boolean): readonly Cell[] {
  const messages = view.state("referrers").links.get(link)?.messages ?? 0;
  const { clicks = 0, bots = 0, suspected = 0 } = view.state("suspected").links.get(link) ?? {};
  return [
    <LinkName link={link} />,
    messages === 0 ? "not known" : messages === 1 ? "them alone" : `${grouped(messages)} people`,
    ...(messages === 1 && !isTracked
      ? ["not shown, since they did not grant tracking"]
      : [clicks - suspected, suspected, bots]),
  ];
}
