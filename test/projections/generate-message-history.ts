/** Random histories of messages to the same few recipients. */
import * as fc from "fast-check";
import { testLog } from "../harness/in-process/number-and-fold-events.ts";

/** fast-check generator of messages of two campaigns to few recipients, in every order of outcomes and reactions. */
export const messages = fc
  .array(
    fc.record({
      kind: fc.constantFrom("attempt", "attempt", "sent", "sent", "failed", "doubt", "seen", "click", "revoke"),
      number: fc.nat(9),
      id: fc.constantFrom("101", "102"),
      username: fc.constantFrom("ann", "bea"),
      campaign: fc.constantFrom("spring", "autumn"),
    }),
    { maxLength: 80, size: "max" },
  )
  .map((rolls) => {
    const log = testLog();
    const open: { readonly attempt_id: string; readonly recipient: { id: string; username: string } }[] = [];
    for (const { kind, number, id, username, campaign } of rolls) {
      const recipient = { id, username };
      const attempt_id = `a${log.events.length}`;
      if (kind === "attempt") {
        const link = `go.example/${number}`;
        const own = number % 3 === 0 ? { personal_links: [{ code: `code-${attempt_id}`, link }] } : { links: [link] };
        const named = { template: "t", template_name: `name ${number % 2}`, variant: "A" };
        const sending = { run_id: `r-${campaign}`, campaign, text: "Hi", day: "2026-11-20" };
        log.add("DirectMessageAttempted", { attempt_id, recipient, ...sending, ...named, ...own });
        open.push({ attempt_id, recipient });
        continue;
      }
      const outcome = open[number % Math.max(1, open.length)];
      if (kind === "seen")
        log.add("DirectMessagesSeen", { recipient: { username }, seen_at: "2027-01-01T00:00:00.000Z" });
      else if (kind === "revoke") log.add("ConsentRecorded", { recipient: { id }, tracking: "denied" });
      else if (outcome === undefined) continue;
      else if (kind === "click") log.add("PersonalLinkClicked", { code: `code-${outcome.attempt_id}` });
      else {
        const data = { ...outcome, run_id: "r" };
        if (kind === "sent")
          log.add("DirectMessageSent", { ...data, message_id: "m", settled_by: number > 2 ? "answer" : "lookup" });
        if (kind === "doubt") log.add("DirectMessageInDoubt", { ...data, detail: "" });
        const failure = { reason: "not_delivered", detail: "", frees_quota: false, retry: false } as const;
        if (kind === "failed") log.add("DirectMessageFailed", { ...data, ...failure });
      }
    }
    return log.events;
  });
