/** @jsxImportSource preact */
import type { VNode } from "preact";
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
import { breakable, Table } from "./table.tsx";

/** The recipients and messages of a link: where its clicks may come from. */
export async function renderSentTo(
  view: View<"contacts" | "referrers" | "results" | "runs">,
  domain: string,
  shortCode: string,
): Promise<VNode> {
  const referrers = view.state("referrers").links.get(linkKey(domain, shortCode));
  return (
    <Section id="sent-to" title="Sent to">
      {referrers === undefined ? (
        <p class="empty">It was in none of the messages that links are known of.</p>
      ) : (
        <>
          <p>
            <Words view={view} sentence={summarize(view, referrers)} />
          </p>
          {await renderRecipients(view, referrers)}
        </>
      )}
    </Section>
  );
}

/** Such as `In 3 messages: 2 of variant A of Autumn invite, 1 of variant B.` */
function summarize(view: View<"results">, { messages, variants }: Referrers): Sentence {
  const counted = variants.map(({ template, variant, messages: count }) => {
    const name = template === "" ? [] : say` of ${other(formatTemplate(view.state("results"), template))}`;
    return say`${grouped(count)} of variant ${other(variant)}${name}`;
  });
  return say`In ${messages === 1 ? "one message" : `${grouped(messages)} messages`}: ${join(counted, ", ")}.`;
}

/**
 * The recipients of a link. If it has only one, they are not named without their consent, because that would show their
 * clicks.
 */
async function renderRecipients(view: View<"contacts">, { newest, messages }: Referrers): Promise<VNode> {
  const events = await Array.fromAsync(eventsAt(view.store, newest));
  const attempts = events.filter((event) => event.type === "DirectMessageAttempted");
  const [only] = attempts;
  const contact = only && findContact(view.state("contacts"), only.data.recipient);
  if (messages === 1 && contact?.tracking.status !== "granted")
    return <p>Its recipient did not grant tracking, so they are not named beside the clicks.</p>;
  return (
    <>
      {attempts.length < messages ? <p>The newest {grouped(attempts.length)}:</p> : null}
      <Table
        label="People it was sent to"
        columns={[...breakable("person", "variant"), "when"]}
        rows={attempts
          .toReversed()
          .map(({ time, data: { recipient, variant } }) => [
            <RecipientLink recipient={recipient} name={isErased(recipient) ? ERASED : `@${recipient.username}`} />,
            <bdi>{variant}</bdi>,
            <Time at={time} />,
          ])}
      />
    </>
  );
}
