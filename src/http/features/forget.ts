import { Type } from "@sinclair/typebox";
import { findNamed } from "../../outreach/person.ts";
import { forgetAddress, forgetPerson, type ForgetDeps as PrivacyDeps, type Forgotten } from "../../privacy/forget.ts";
import { json } from "../server/answer.ts";
import { jsonBody } from "../server/body.ts";
import { formOf } from "./console-form.ts";
import { post } from "../server/endpoint.ts";
import { appendedOrNothing, problems } from "../server/problem.ts";
import { personBody } from "./recipients.ts";
import { closed, count } from "./schema.ts";

export interface ForgetDeps extends PrivacyDeps {
  /** Aborts when the service begins to stop. */
  readonly stopping: AbortSignal;
}

const forgotten = Type.Object({
  events: Type.Integer({ minimum: 0, description: "That can no longer be read." }),
  keys: count,
});

const NOT_REACHED =
  "What networks, chats and backups of the key file hold is not reached. It cannot be undone. A big log takes a while.";

export const forgetRecipient = post({
  id: "forgetRecipient",
  tag: "outreach",
  summary: "Erases a person.",
  description: `Deletes the keys of their personal data in the log, and of kept answers that name them; nobody ever writes to them again. ${NOT_REACHED}`,
  body: personBody,
  isSlow: true,
  answers: { 200: { says: "They are erased.", schema: forgotten } },
  problems: ["unknownPerson", "logUnavailable"],
  async handle(deps: ForgetDeps, { body: { recipient }, metadata }) {
    const find = (contacts: Parameters<typeof findNamed>[0]) => findNamed(contacts, recipient);
    const erased = await untilStop(deps, forgetPerson(deps, find, { metadata, signal: deps.stopping }));
    if (erased === undefined) throw problems.unknownPerson();
    return json(200, erased);
  },
});

export const forgetClicks = post({
  id: "forgetClicks",
  tag: "tracking",
  summary: "Erases the clicks of an IP address.",
  description: `Deletes the keys of its clicks and of the records of its wrong tokens. ${NOT_REACHED}`,
  body: jsonBody(Type.Object({ ip: Type.String({ format: "ip-address", examples: ["203.0.113.7"] }) }, closed)),
  isSlow: true,
  answers: { 200: { says: "They are erased.", schema: forgotten } },
  problems: ["unknownAddress", "logUnavailable"],
  async handle(deps: ForgetDeps, { body: { ip }, metadata }) {
    const erased = await untilStop(deps, forgetAddress(deps, ip, { metadata, signal: deps.stopping }));
    if (erased === undefined) throw problems.unknownAddress();
    return json(200, erased);
  },
});

/** A service that stops ends the search: nothing was done then. */
function untilStop<T>({ stopping }: ForgetDeps, work: Promise<T>): Promise<T> {
  return appendedOrNothing(work).catch((fault: unknown) => {
    throw stopping.aborted && fault === stopping.reason ? problems.logUnavailable(true) : fault;
  });
}

function saysErased({ events, keys }: Forgotten): string {
  return `Erased: ${events} ${events === 1 ? "event" : "events"} can no longer be read, ${keys} ${keys === 1 ? "key was" : "keys were"} deleted.`;
}

export const forgetByForm = formOf(forgetRecipient, { body: ({ recipient }) => ({ recipient }), says: saysErased });

export const forgetClicksByForm = formOf(forgetClicks, { body: ({ ip }) => ({ ip }), says: saysErased });
