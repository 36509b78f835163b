/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { Recorded } from "../../../events/event-types-and-codec.ts";
import { countInWords, grouped } from "../../platform/format-numbers-and-lists.ts";
import { readRecipientCampaigns } from "../../outreach/campaigns/read-campaigns.ts";
import { describeSkip, readRecipient, type RecipientPage } from "../../recipients/recipient-list-and-page.ts";
import { campaignHref, eventHref, recipientHref } from "../hrefs.ts";
import { ConsoleDocument, Section } from "../document.tsx";
import { EventList, EventSentence, LinkName, RunName, Words } from "../parts/event-sentence.tsx";
import { RecipientActions } from "../parts/recipient-actions.tsx";
import { breakable, type NamedValue, NamedValues, numbers, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { consolePage, type DisclosingPage, readNumber, type View } from "../page-context.ts";
import { missingPage } from "./error-page.tsx";
import { formatContactName, ORIGIN_WORDS, StatusBadge } from "./people.tsx";
import { CHOICE_WORDS } from "../parts/action-form.tsx";
import { A } from "../parts/links-forms-and-tabs.tsx";

/** Number of messages shown with their whole text, of up to 10,000 characters each. */
const MESSAGES_SHOWN = 10;

type Message = RecipientPage["messages"][number];

const READS = [
  ...(["account", "campaigns", "contacts", "links", "quota", "referrers"] as const),
  ...(["results", "run", "runs", "suspected"] as const),
];

/** Page of one recipient: the status, the grounds for writing, the exact texts, and all events about them. */
export const recipientPage = consolePage({ reads: READS, render: renderRecipient });

async function renderRecipient(view: View<(typeof READS)[number]>): Promise<DisclosingPage> {
  const asked = view.parameters["id"] ?? "";
  const before = readNumber(view, "before");
  const found = await readRecipient(view, asked, { hashesOf: view.settings.hashesOf, before });
  if (found.known !== "named") return unnamedPage(view, asked, found.known === "unknown");
  const { contact, events, older } = found;
  const campaigns = await readRecipientCampaigns(view, view.settings.campaigns, found.recipient);
  const page = (
    <ConsoleDocument title={formatContactName(contact)} path="/people" view={view}>
      <h1>
        <bdi>{formatContactName(contact)}</bdi> <StatusBadge contact={contact} />
      </h1>
      <div class="columns">
        {before === undefined ? <Case view={view} found={found} /> : null}
        <div class="stack">
          <ContactFacts found={found} />
          <RecipientActions contact={contact} back={recipientHref(contact) ?? "/people"} />
        </div>
      </div>
      {before === undefined ? (
        <>
          <Campaigns rows={campaigns} />
          <EarlierMessages view={view} messages={found.messages.slice(1)} />
          <TheirLinks links={found.links} />
        </>
      ) : null}
      <Section id="history" title="What happened">
        <EventList view={view} events={events} />
        {older.count > 0 ? (
          <p>
            <A href={`/people/${encodeURIComponent(asked)}?before=${older.before}`}>
              {grouped(older.count)} older events
            </A>
          </p>
        ) : null}
      </Section>
      <Reads view={view} found={found} />
    </ConsoleDocument>
  );
  return { page, disclosed: { recipient: found.recipient } };
}

interface FoundProps {
  readonly view: View<"runs">;
  readonly found: RecipientPage;
}

/** Shows the newest reads of the recipient's data, and who read. Renders nothing if no read is recorded. */
function Reads({ view, found: { reads, readCount } }: FoundProps): VNode | null {
  if (reads.length === 0) return null;
  return (
    <Section id="reads" title="Who read about them">
      <EventList view={view} events={reads} />
      {readCount > reads.length ? (
        <p>
          The newest {reads.length} of {grouped(readCount)}; <A href="/activity?type=PersonalDataRead">the log</A> has
          all.
        </p>
      ) : null}
    </Section>
  );
}

/** Page of a recipient that the log knows only by a hash of the name, or not at all. */
function unnamedPage(view: View<"account">, asked: string, isMissing: boolean): DisclosingPage {
  const name = <bdi>{asked}</bdi>;
  const search = asked.replace(/^@/, "");
  if (isMissing) {
    const words = (
      <>
        The log has no person called {name}.{" "}
        <A href={`/people?${new URLSearchParams({ search })}`}>Search people for a part of this name</A>, or import them
        on the page <A href="/people">People</A>.
      </>
    );
    return missingPage(view, "/people", "Unknown", words);
  }
  const words = (
    <>
      The person called {name} was erased, or suppressed by a hash alone. The log does not say who they are, and no run
      contacts them.
    </>
  );
  return { ...missingPage(view, "/people", "Erased or hashed", words), isMissing: false };
}

/**
 * Answers why a recipient got their newest message, or why they got none. Each step of the answer has the event that
 * proves it.
 */
function Case({ view, found }: FoundProps): VNode {
  const { contact, events, messages } = found;
  const [newest] = messages;
  const attempt = newest?.attempt;
  const name = contact.username === undefined ? "they" : `@${contact.username}`;
  const skipped = attempt === undefined ? events.find(({ type }) => type === "DirectMessageSkipped") : undefined;
  // A reply may be read long after it was written. A reply that was written before the newest message is no answer to
  // it.
  const replied = events.find(
    ({ type, data }) => type === "DirectMessageReceived" && data.received_at >= (attempt?.time ?? ""),
  );
  const suppressed = events.find(({ type }) => type === "RecipientSuppressed");
  const held = contact.isHeld ? events.find(({ type }) => type === "RecipientHeld") : undefined;
  return (
    <Section
      id="case"
      class="card"
      title={["Why ", contact.isSuppressed ? "will " : "did ", <bdi>{name}</bdi>, ` get ${describeCase(found)}?`]}
    >
      <ol class="reasons">
        <Reason title="Consent" proof={found.grounds}>
          <Words view={view} sentence={found.consent} />
        </Reason>
        {newest === undefined ? null : (
          <Reason title="Message" proof={newest.attempt}>
            Variant <VariantName message={newest} />, in <RunName view={view} runId={newest.attempt.data.run_id} />,{" "}
            <Time at={newest.attempt.time} />: {newest.outcome}.
            <pre class="bubble" tabIndex={0}>
              <bdi>{newest.attempt.data.text}</bdi>
            </pre>
          </Reason>
        )}
        <EventReason view={view} title="Skipped" event={skipped} />
        {attempt !== undefined || skipped !== undefined ? null : (
          <Reason title="Not contacted">No run has reached them yet.</Reason>
        )}
        {newest === undefined || newest.trackedClicks === "" ? null : (
          <Reason title="Clicks">{newest.trackedClicks}.</Reason>
        )}
        <EventReason view={view} title="Reply" event={replied} />
        <EventReason view={view} title="Held" event={held} />
        <EventReason view={view} title="Suppressed" event={suppressed} />
      </ol>
    </Section>
  );
}

/**
 * Returns the end of the question that the page answers (`Why did @sara get …?`): a message, a second message, or none.
 */
function describeCase({ contact, messages }: RecipientPage): string {
  if (contact.isSuppressed) return messages.length === 0 ? "no message" : "no more messages";
  if (messages.length === 0) return "no message";
  return new Set(messages.map((one) => one.attempt.data.campaign)).size > 1 ? "a second message" : "a message";
}

/**
 * One step of the page's answer to "why was this recipient (not) contacted?": an event, as a sentence. Renders nothing
 * if there is no such event.
 */
function EventReason({ view, title, event }: { view: View<"runs">; title: string; event: Recorded | undefined }) {
  if (event === undefined) return null;
  return (
    <Reason title={title} proof={event}>
      <EventSentence view={view} event={event} />
    </Reason>
  );
}

interface ReasonProps {
  readonly title: string;
  /**
   * Event that proves the sentence in `children`; the page links to it. Absent if no single event proves the sentence.
   */
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

function ContactFacts({ found: { contact, grounds: proof } }: { readonly found: RecipientPage }): VNode {
  const { id, username, basis, origins, timezone, variant, received, replied, skipped, fields, attempted_at, seen_at } =
    contact;
  const by = proof && <>, by event {<A href={eventHref(proof.position)}>{grouped(proof.position)}</A>}</>;
  const facts: readonly NamedValue[] = [
    ["skipped for", skipped.map(describeSkip).join(", ")],
    [
      "grounds for writing",
      <>
        {CHOICE_WORDS[basis]}
        {by}
      </>,
    ],
    ["source", origins.map((origin) => ORIGIN_WORDS[origin]).join(", ")],
    ["handle", username === undefined ? "" : <bdi>@{username}</bdi>],
    ["time zone", timezone === undefined ? "" : <bdi>{timezone}</bdi>],
    ["id", id === undefined ? "not known yet" : <code>{id}</code>],
    ["last message", attempted_at === undefined ? "none" : <Time at={attempted_at} />],
    ["seen", seen_at === undefined ? "" : <Time at={seen_at} />],
    ["variant", variant === undefined ? "" : <bdi>{variant}</bdi>],
    ["messages from them", replied ? "after ours" : received ? "before ours" : "none was read"],
    ...Object.entries(fields).map(([name, value]) => [name, <bdi>{value}</bdi>] as const),
  ];
  return <NamedValues of={facts.filter(([, value]) => value !== "")} />;
}

/** Matches a moment in the reason why no message of a campaign is possible yet. */
const ISO_TIME = /(\d{4}-\d\d-\d\dT[\d:.]+Z)/;

/** Messages of each campaign to the recipient, and whether a next one is possible. Renders nothing without campaigns. */
function Campaigns({ rows }: { readonly rows: Awaited<ReturnType<typeof readRecipientCampaigns>> }): VNode | null {
  if (rows.length === 0) return null;
  return (
    <Section id="campaigns" title="Campaigns">
      <Table
        label="Messages by campaign"
        columns={[...breakable("campaign"), "message", "when", "variant", ...breakable("next message")]}
        rows={rows.map(({ name, status, attempted_at, variant, replied, next }) => [
          <A href={campaignHref(name)}>
            <bdi>{name}</bdi>
          </A>,
          status === "open" ? "none" : `${status.replaceAll("_", " ")}${replied ? ", replied" : ""}`,
          attempted_at === undefined ? null : <Time at={attempted_at} />,
          variant ?? null,
          <>{next.split(ISO_TIME).map((part, at) => (at % 2 === 0 ? part : <Time at={part} />))}</>,
        ])}
      />
    </Section>
  );
}

/** Shows the earlier messages to the recipient, with their exact texts. Texts of replies are not stored. */
function EarlierMessages({ view, messages }: { view: View<"runs">; messages: readonly Message[] }): VNode | null {
  if (messages.length === 0) return null;
  return (
    <Section id="messages" title="Earlier messages to them">
      {messages.slice(0, MESSAGES_SHOWN).map((message) => (
        <>
          <p>
            <Time at={message.attempt.time} />: variant <VariantName message={message} />, in{" "}
            <RunName view={view} runId={message.attempt.data.run_id} />; {message.outcome}.
            {message.trackedClicks === "" ? null : ` Clicks: ${message.trackedClicks}.`}
          </p>
          <pre tabIndex={0}>
            <bdi>{message.attempt.data.text}</bdi>
          </pre>
        </>
      ))}
      {messages.length > MESSAGES_SHOWN ? <p>The newest {MESSAGES_SHOWN}; the others are below.</p> : null}
    </Section>
  );
}

/** Name of a message's variant: `A of Autumn invite`, or `A` if its template has no name. */
function VariantName({ message: { attempt } }: { readonly message: Message }): VNode {
  const { variant, template_name } = attempt.data;
  return (
    <>
      <bdi>{variant}</bdi>
      {template_name && <> of {<bdi>{template_name}</bdi>}</>}
    </>
  );
}

function saySent(messages: number): string {
  if (messages === 0) return "not known";
  return messages === 1 ? "to them alone" : `to ${countInWords(messages, "person", "people")}`;
}

/**
 * Says that this recipient got a link of their own in place of the shared one. `messages`: number of messages to others
 * with the shared link.
 */
function sayReplaced(messages: number): string {
  const own = "to them as a link of their own";
  return messages === 0 ? own : `${own}, and to ${countInWords(messages, "other person", "other people")}`;
}

/**
 * Shows the links of the messages to a recipient, with the clicks of all recipients of each link. Renders nothing if
 * there are none.
 */
function TheirLinks({ links }: { readonly links: RecipientPage["links"] }): VNode | null {
  if (links.length === 0) return null;
  return (
    <Section id="their-links" title="Links sent to them">
      <Table
        label="Clicks of the links sent to them"
        columns={[...breakable("link"), "sent", ...numbers("people", "suspected", "bots")]}
        rows={links.map(({ link, isReplaced, messages, clicks }) => [
          <LinkName link={link} />,
          isReplaced ? sayReplaced(messages) : saySent(messages),
          ...(clicks === undefined
            ? ["not shown, since they did not grant tracking"]
            : [clicks.people, clicks.suspected, clicks.bots]),
        ])}
      />
    </Section>
  );
}
