/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Recorded } from "../../../events/catalog.ts";
import { ERASED } from "../../../events/encryption.ts";
import { linkKey } from "../../../projections/sent-links.ts";
import { findContact } from "../../../projections/contacts.ts";
import type { Referrers } from "../../../projections/referrers.ts";
import { formatTemplate } from "../../../projections/results.ts";
import { eventsAt } from "../../log/event-log.ts";
import { join, other, say, type Sentence } from "../../history/words/sentence.ts";
import { isErased } from "../hrefs.ts";
import { grouped } from "../../platform/counts-and-lists.ts";
import { Section } from "../document.tsx";
import { RecipientLink, Words } from "./events.tsx";
import { Time } from "./time.tsx";
import type { View } from "../page-context.ts";
import { breakable, Row, Table } from "./table.tsx";

type Attempt = Recorded<"DirectMessageAttempted">;

interface Sent {
  readonly referrers: Referrers;
  /** The newest first. */
  readonly attempts: readonly Attempt[];
  /** False: the link is in one message, and naming its recipient here would show their clicks without their consent. */
  readonly isNamed: boolean;
}

/** In which messages a link was sent; undefined: none is known. */
export async function sentWith(view: View, domain: string, shortCode: string): Promise<Sent | undefined> {
  const referrers = view.state("referrers").links.get(linkKey(domain, shortCode));
  if (referrers === undefined) return undefined;
  const events = await Array.fromAsync(eventsAt(view.store, referrers.newest));
  const attempts = events.filter((event): event is Attempt => event.type === "DirectMessageAttempted");
  const [only] = attempts;
  const contact = only && findContact(view.state("contacts"), only.data.recipient);
  const isTracked = contact?.tracking.status === "granted";
  return { referrers, attempts: attempts.toReversed(), isNamed: referrers.messages > 1 || isTracked };
}

/** The recipients and messages of a link: where its clicks may come from. */
export function SentTo({ view, sent }: { readonly view: View; readonly sent: Sent | undefined }): VNode {
  return (
    <Section id="sent-to" title="Sent to">
      {sent === undefined ? (
        <p class="empty">It was in none of the messages that links are known of.</p>
      ) : (
        <>
          <p>
            <Words view={view} sentence={summarize(view, sent.referrers)} />
          </p>
          {sent.isNamed ? (
            <SentTable sent={sent} />
          ) : (
            <p>Its recipient did not grant tracking, so they are not named beside the clicks.</p>
          )}
        </>
      )}
    </Section>
  );
}

/** Such as `In 3 messages: 2 of variant A of Autumn invite, 1 of variant B.` */
function summarize(view: View, { messages, variants }: Referrers): Sentence {
  const counted = variants.map(({ template, variant, messages: count }) => {
    const name = template === "" ? [] : say` of ${other(formatTemplate(view.state("results"), template))}`;
    return say`${grouped(count)} of variant ${other(variant)}${name}`;
  });
  return say`In ${messages === 1 ? "one message" : `${grouped(messages)} messages`}: ${join(counted, ", ")}.`;
}

function SentTable({ sent: { referrers, attempts } }: { readonly sent: Sent }): VNode {
  return (
    <>
      {attempts.length < referrers.messages ? <p>The newest {grouped(attempts.length)}:</p> : null}
      <Table label="People it was sent to" columns={[...breakable("person", "variant"), "when"]}>
        {attempts.map(({ time, data: { recipient, variant } }) => (
          <Row
            cells={[
              <RecipientLink recipient={recipient} name={isErased(recipient) ? ERASED : `@${recipient.username}`} />,
              <bdi>{variant}</bdi>,
              <Time at={time} />,
            ]}
          />
        ))}
      </Table>
    </>
  );
}
