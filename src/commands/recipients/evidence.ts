import { formatPublicKey } from "eventstore-lite/proof";
import { DEFAULT_CAMPAIGN } from "../../../events/campaign.ts";
import type { EventType, Recorded } from "../../../events/event-types-and-codec.ts";
import { hideCodes } from "../../networks/hide-personal-codes.ts";
import { personalLinkOwner } from "../../../events/clicks-links-conversions.ts";
import { outreachByCampaign } from "../../../projections/contact-outreach-by-campaign.ts";
import { toRecipient, type Contact } from "../../../projections/contact-state.ts";
import { historyOfRecipient, type RecipientHistory } from "../../history/history-of-recipient-link-or-event.ts";
import { describeConsent } from "../../history/sentences/outreach.ts";
import { formatSentence } from "../../history/sentences/sentence-parts.ts";
import { describeEvent } from "../../history/event-sentences.ts";
import { eventsAt, inOrder } from "../../log/event-log.ts";
import { proveEvents } from "../../log/sign-heads-and-prove-events.ts";
import { discloseRecipient } from "../../privacy/record-personal-data-read.ts";
import { findNamed, parseRecipient } from "../../recipients/resolve-recipient.ts";
import type { OpenedLog } from "../../privacy/open-log.ts";
import { toEventJson } from "../../history/event-json.ts";
import { absolutePath, Command, JSON_OPTION, type MakeCommand } from "../shared/command.ts";
import { answer, fail, printable } from "../shared/terminal-answers-and-exit-codes.ts";
import { openExistingLog, recordRead } from "../shared/open-log-and-record-reads.ts";
import { makeNewFile } from "../../platform/new-file.ts";
import { withProgress } from "../shared/progress.ts";

export const evidenceCommand: MakeCommand = (terminal) =>
  new Command("evidence")
    .summary("write all that the log holds of a recipient, with proofs")
    .description(
      `Writes one JSON file for the recipient or an authority: who they are, their consent
and tracking with its history, the messages to them with their outcomes, clicks
on their own links, and each event with its proof (see audit prove). Its
public_key checks the proofs by reachlog audit check. The file is personal data.`,
    )
    .argument("<handle>", "id, handle or @handle")
    .requiredOption("--out <file>", "a new file, which only its owner may read", absolutePath)
    .option(...JSON_OPTION)
    .examples("reachlog recipients evidence @sara_sells --out sara.json")
    .action(async (name, { out, json }) => {
      parseRecipient(name);
      await using log = await openExistingLog(terminal);
      const { position: to } = await log.head();
      const history = await withProgress(terminal, "reading", to, (onProgress) =>
        historyOfRecipient({ store: log, to, onProgress }, (contacts) => findNamed(contacts, name)),
      );
      if (history === undefined) return fail(terminal, `no recipient is known as ${printable(name)}`);
      const { contact } = history;
      const positions = inOrder([...history.positions, ...(await findOfClicks(log, history))]);
      const proved = await proveEvents(log, log.checkpoints, log.logClock.now, positions);
      if ("loss" in proved) return fail(terminal, `${proved.loss}; nothing was written`);
      const events = await Array.fromAsync(eventsAt(log, positions));
      const about = discloseRecipient(toRecipient(contact));
      await recordRead(terminal, log, { resource: "evidence", ...about, records: events.length });
      const { publicKey } = await log.checkpoints.loadKey();
      const evidence = {
        position: to,
        public_key: formatPublicKey(publicKey),
        ...describeContact(contact),
        consent_history: events.filter(({ type }) => CONSENT_TYPES.includes(type)).map(summarize),
        messages: events
          .filter((event) => event.type === "DirectMessageAttempted")
          .map((message) => describeMessage(message, events)),
        events: events.map((event, at) => ({ ...toEventJson(event), proof: proved.proofs[at] })),
      };
      await makeNewFile(out, `${JSON.stringify(evidence, null, 2)}\n`);
      const text = `${printable(out)} holds ${events.length} events with their proofs\n`;
      return answer(terminal, json, { out, events: events.length }, text);
    });

/**
 * Returns the positions of a recipient's clicks, each right before its PersonalLinkClicked, and of the events that
 * erased such clicks.
 */
async function findOfClicks(log: OpenedLog, { positions, contact }: RecipientHistory): Promise<readonly number[]> {
  const found: number[] = [];
  for await (const { type, position } of eventsAt(log, positions))
    if (type === "PersonalLinkClicked") found.push(position - 1);
  const owners = contact.personal_links.map((code) => ({ id: personalLinkOwner(code).id }));
  const keys = new Set(owners.flatMap(log.keyring.refsOf));
  if (keys.size === 0) return found;
  for await (const { type, data, position } of log.read({ types: ["PersonForgotten"] }))
    if (type === "PersonForgotten" && data.keys.some((key) => keys.has(key))) found.push(position);
  return found;
}

function describeContact(contact: Contact) {
  const { id, username, name, fields, status, suppressed, basis, consent, consents_for, tracking, wrote_at } = contact;
  const words = formatSentence(describeConsent(contact));
  return {
    recipient: { id, username, name, fields, status, suppressed },
    consent: { words, basis, evidence: consent, consents_for, tracking, wrote_at },
    campaigns: outreachByCampaign(contact).map(([campaign, { status: own, attempted_at, variant, replied }]) => {
      return { campaign, status: own, attempted_at, variant, replied };
    }),
  };
}

const CONSENT_TYPES: readonly EventType[] = [
  "RecipientAdded",
  "ConsentRecorded",
  "DirectMessageReceived",
  "RecipientSuppressed",
];

function summarize(event: Recorded) {
  const { position, time } = event;
  return { position, time, words: describeEvent(event) };
}

/** Describes a message in the evidence. Its outcome is null if the log has none yet. */
function describeMessage(message: Recorded<"DirectMessageAttempted">, events: readonly Recorded[]) {
  const { attempt_id, campaign = DEFAULT_CAMPAIGN, text, variant, basis, source } = hideCodes(message).data;
  const outcome = events.findLast(
    (event) => event !== message && "attempt_id" in event.data && event.data.attempt_id === attempt_id,
  );
  const { position, time } = message;
  return {
    position,
    time,
    campaign,
    text,
    variant,
    basis,
    source,
    outcome: outcome === undefined ? null : summarize(outcome),
  };
}
