import type { KnownRecipient, Recipient } from "../../events/outreach.ts";
import { toRecipient } from "../../projections/contact-state.ts";
import { contacts } from "../../projections/contacts.ts";
import { fold } from "../../projections/projection.ts";
import type { Dice, Step } from "./generate-history.ts";
import type { TestLog } from "../harness/in-process/number-and-fold-events.ts";

/** A person on the network in a generated history, and their handles. One handle passes from one person to another. */
interface Person {
  readonly id: string;
  readonly handles: readonly string[];
}

const PEOPLE: readonly Person[] = [
  { id: "101", handles: ["ann"] },
  { id: "102", handles: ["Bea", "bea"] },
  { id: "103", handles: ["cy", "dora"] },
  { id: "104", handles: ["dora", "dora2"] },
  { id: "105", handles: ["eve"] },
];

const DAYS = ["2026-11-20", "2026-11-21", "2026-11-22"];

/** Message texts of generated histories, whose clicks are on the links a, b and c. */
const TEXTS = ["Hi", "Hi: https://go.example/a", "Go.Example/b?utm=x, or http://go.example/c!", "(go.example/a)"];

const FIELDS = [{}, { company: "Acme" }, { company: "Beta", city: "Bern" }, { constructor: "x", $map: "y" }];

const SIGNALS = { sends: 0, users: 0, followers: 0, posts: 0, messages: 3, usd: 0.03 };

interface Open extends Pick<KnownRecipient, "id"> {
  readonly attempt_id: string;
  readonly run_id: string;
  readonly recipient: KnownRecipient;
  doubted: boolean;
}

export function createOutreachPart(log: TestLog): readonly Step[] {
  let run: { run_id: string; dry_run: boolean } | undefined;
  let made = 0;
  const open: Open[] = [];

  const start: Step = (dice) => {
    if (run !== undefined) return;
    run = { run_id: `run-${++made}`, dry_run: dice.once(4) };
    log.add("RunStarted", { ...run, ...(dice.once(3) ? { limit: 2, basis: "opt_in", source: "list" } : {}) });
  };
  const attempt: Step = (dice) => {
    if (run === undefined || run.dry_run) return start(dice);
    const recipient = known(dice);
    const { run_id } = run;
    const attempt_id = `attempt-${++made}`;
    open.push({ attempt_id, run_id, recipient, id: recipient.id, doubted: false });
    log.add("DirectMessageAttempted", {
      attempt_id,
      run_id,
      recipient,
      text: dice.pick(TEXTS),
      variant: "A",
      day: dice.pick(DAYS),
      ...(dice.once(3) ? { template: "t1", template_name: dice.pick(["Autumn invite", "Winter invite"]) } : {}),
      ...(dice.once(3) ? { personal_links: [{ code: `own-${made}`, link: "go.example/a" }] } : {}),
    });
  };
  const settle: Step = (dice) => {
    if (open.length === 0) return;
    const last = dice.pick(open);
    const { attempt_id, run_id, recipient } = last;
    const outcome = { attempt_id, run_id, recipient };
    const kind = dice.pick(["sent", "failed", "doubt", "left"] as const);
    if (kind === "left" && !last.doubted) return;
    if (kind === "doubt") {
      if (!last.doubted) log.add("DirectMessageInDoubt", { ...outcome, detail: "time-out" });
      last.doubted = true;
      return;
    }
    open.splice(open.indexOf(last), 1);
    if (kind === "left") {
      log.add("DirectMessageLeft", { ...outcome, why: "unknown" });
      return;
    }
    if (kind === "sent") {
      const settled_by = last.doubted ? "lookup" : "answer";
      const next = dice.pick([{}, { next_at: "2026-11-20T12:00:00.000Z" }]);
      log.add("DirectMessageSent", { ...outcome, message_id: "m", settled_by, ...next });
    } else {
      const reason = last.doubted
        ? "not_delivered"
        : dice.pick(["recipient_closed", "not_permitted", "rate_limited", "withdrawn"] as const);
      const frees_quota = !last.doubted;
      log.add("DirectMessageFailed", { ...outcome, reason, detail: "", frees_quota, retry: reason === "rate_limited" });
    }
  };
  const finish: Step = (dice) => {
    if (run === undefined) return;
    const { run_id, dry_run } = run;
    const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
    if (dry_run) {
      const listed = dice.pick([
        { recipient: known(dice), variant: "A" },
        { recipient: anyRecipient(dice), reason: "no_consent" },
      ] as const);
      log.add("DryRunRecipientListed", { run_id, ...listed });
      log.add("DryRunFinished", { run_id, reason: "completed", would_send: 1, would_skip: 0 });
    } else if (dice.once(3)) log.add("RunAbandoned", { run_id, ...counts });
    else log.add("RunFinished", { run_id, reason: "completed", ...counts });
    run = undefined;
  };

  return [
    start,
    attempt,
    attempt,
    attempt,
    settle,
    settle,
    settle,
    finish,
    (dice) => {
      if (run === undefined || run.dry_run) return;
      const reason = dice.pick(["no_consent", "suppressed", "missing_field"] as const);
      log.add("DirectMessageSkipped", { run_id: run.run_id, recipient: anyRecipient(dice), reason });
    },
    (dice) => {
      const added = { basis: dice.pick(["none", "opt_in", "dm_first"] as const), fields: dice.pick(FIELDS) };
      const name = dice.once(2) ? { name: "Ada", timezone: "Asia/Tokyo" } : {};
      log.add("RecipientAdded", { recipient: anyRecipient(dice), ...added, ...name, ...consent(dice), source: "list" });
    },
    (dice) => {
      const basis = dice.once(2) ? { basis: dice.pick(["none", "opt_in"] as const) } : {};
      const blank = dice.pick([[], ["city"], ["name", "company"], ["timezone"]]);
      const added = { recipient: anyRecipient(dice), ...basis, ...consent(dice), fields: dice.pick(FIELDS), blank };
      log.add("RecipientAdded", { ...added, source: "list" });
    },
    (dice) => {
      const basis = dice.once(2) ? { basis: dice.pick(["none", "opt_in"] as const) } : {};
      log.add("ConsentRecorded", { recipient: anyRecipient(dice), ...basis, ...consent(dice) });
    },
    (dice) => {
      const hashes = dice.once(2) ? { hashes: [`mark-${dice.pick([1, 2, 3])}`] } : {};
      // If the suppression has hashes, the recipient may be missing: erased, or known only by a hash.
      const named =
        "hashes" in hashes && dice.once(3) ? dice.pick([{}, { recipient: {} }]) : { recipient: anyRecipient(dice) };
      log.add("RecipientSuppressed", { ...named, reason: dice.pick(["opt_out", "list"] as const), ...hashes });
    },
    (dice) => {
      const seen_at = dice.pick(["2025-01-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"]);
      log.add("DirectMessagesSeen", { recipient: anyRecipient(dice), seen_at });
      log.add("SignalStreamChanged", { open: dice.once(2), details: [] });
      log.add("SignalsReceived", { messages: 2, chats: 1, usage: SIGNALS });
    },
    (dice) => {
      const received_at = dice.pick(["2025-01-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"]);
      log.add("DirectMessageReceived", { recipient: anyRecipient(dice), message_id: `m${++made}`, received_at });
    },
    (dice) => {
      if (run === undefined) return;
      const { run_id } = run;
      const newest = dice.once(2) ? { newest_id: String(++made) } : {};
      const reader = dice.once(4) ? { usage: SIGNALS } : { run_id };
      log.add("InboxRead", { ...reader, messages: 3, ...newest, ...(dice.once(2) ? { backlog: `p${made}` } : {}) });
    },
    (dice) => {
      if (run === undefined) return;
      const { run_id } = run;
      const newest = dice.once(2) ? { newest: String(++made) } : {};
      const read = { source: dice.pick(["followers", "search"] as const), scope: dice.pick(["1", "2"]), people: 2 };
      const from = dice.once(2) ? { from: `p${made}` } : {};
      log.add("SourceRead", { run_id, ...read, ...from, ...newest, ...(dice.once(2) ? { next: `p${made}` } : {}) });
    },
    (dice) => {
      if (run === undefined) return;
      const reason = dice.pick(["pace", "rate_limited", "settling", "window_closed"] as const);
      log.add("RunPaused", { run_id: run.run_id, reason, until: "2026-11-22T10:00:00.000Z" });
    },
    () => {
      if (run !== undefined) log.add("RunStopRequested", { run_id: run.run_id });
    },
    (dice) => {
      if (run !== undefined) log.add("RecipientRequested", { run_id: run.run_id, recipient: anyRecipient(dice) });
    },
    (dice) => {
      const reason = dice.pick(["held", "stopped"] as const);
      if (run !== undefined)
        log.add("RecipientNotReached", { run_id: run.run_id, recipient: anyRecipient(dice), reason });
    },
    (dice) => {
      const received_at = dice.once(2) ? "2026-11-20T10:00:30.000Z" : "2026-11-20T11:00:00.000Z";
      log.add("RecipientHeld", { recipient: anyRecipient(dice), message_id: `m${++made}`, received_at });
    },
    (dice) => log.add("RecipientReleased", { recipient: anyRecipient(dice) }),
    (dice) =>
      log.add("RecipientRetryAllowed", {
        recipient: anyRecipient(dice),
        ...(dice.once(2) ? { run_id: `run-${made}` } : {}),
      }),
    (dice) => {
      // Adds an event about a read of personal data. If the log has recipients, it is mostly a read of one recipient's
      // page.
      const { people } = fold(contacts, contacts.initial(), log.events);
      const read = people.size === 0 || dice.once(3) ? {} : { recipient: toRecipient(dice.pick([...people.values()])) };
      log.add("PersonalDataRead", { resource: "recipient", ...read });
    },
    (dice) => {
      log.add("LinkAdded", { domain: "go.example", code: "a", target: "https://shop.example/" });
      if (dice.once(2)) return;
      const name = dice.pick(["spring", "summer"]);
      const definition = { name, text: "Hi", audience: dice.pick([{}, { messaged: "default", days: 3 }]) };
      log.add(dice.pick(["CampaignCreated", "CampaignChanged"] as const), definition);
      if (dice.once(3)) log.add("CampaignEnded", { name });
    },
    (dice) => log.add("PersonalLinkClicked", { code: `own-${dice.pick([1, 2, made, made - 1, made - 2])}` }),
    (dice) => {
      const click = log.add("PersonalLinkClicked", { code: `own-${dice.pick([1, 2, made])}` });
      const by = dice.pick([{}, { code: `own-${dice.pick([1, 2, made])}` }]);
      const attributed = dice.pick([{}, { domain: "go.example", short_code: "a", click }]);
      const value = dice.pick([{}, { value: 2490, currency: "EUR" }]);
      const about = { name: "Purchase", occurred_at: "2026-11-20T10:00:30.000Z", channels: [] };
      const data = { ...about, ...attributed, ...by, ...value };
      log.add("ConversionRecorded", data);
      if (dice.once(2)) log.add("ConversionReversed", data);
    },
    () => log.add("MessagesLookedUp", { in_doubt: 2, sent: 1, not_delivered: 0 }),
    () => log.add("RunRefused", { reason: "daily_limit_reached", day: DAYS[0] ?? "", used: 100 }),
  ];
}

function known(dice: Dice): KnownRecipient {
  const person = dice.pick(PEOPLE);
  return { id: person.id, username: dice.pick(person.handles) };
}

function consent(dice: Dice) {
  return dice.pick([
    {},
    { consent_at: "2026-03-02", consent_source: "form" },
    { tracking: "granted", tracking_at: "2026-03-02", tracking_source: "form" },
    { tracking: "denied", tracking_text: "No" },
  ] as const);
}

/**
 * Returns a recipient named by id, by handle, or by both. Later events of the history may link the id to the handle.
 */
function anyRecipient(dice: Dice): Recipient {
  const { id, username } = known(dice);
  return dice.pick([{ id }, { username }, { username: username.toUpperCase() }, { id, username }]);
}
