import { type Static, Type } from "@sinclair/typebox";
import { findNamed } from "../../recipients/resolve-recipient.ts";
import { forgetAddress, forgetPerson, type Forgotten } from "../../privacy/forget.ts";
import { feature, type AppDeps } from "../deps.ts";
import { type Fields, objectBody } from "../server/body.ts";
import { route, reply } from "../server/endpoint.ts";
import { leaveOutEmpty } from "../server/form-routes.ts";
import { appendedOrNothing, problems, type Problem } from "../server/problem.ts";
import { recipientName } from "./recipients.ts";
import { count, id, oneOf } from "../../platform/common-schemas.ts";

const forgotten = Type.Object({
  events: Type.Integer({ minimum: 0, description: "Events that can no longer be read." }),
  keys: count,
  id,
  position: Type.Integer({
    minimum: 1,
    description:
      "Of the event that records it; of more than 4,000 keys the first of several, next to each other. `/api/audit/proof/{event}` proves each.",
  }),
});

const reason = {
  ground: Type.Optional(oneOf("no_longer_needed", "consent_withdrawn", "objection", "unlawful", "legal_obligation")),
  requested_by: Type.Optional(oneOf("recipient", "representative", "authority", "operator")),
};

const NOT_REACHED =
  "Data at networks, in chats and in backups of the key file is not erased. This cannot be undone. A large log takes a while.";

/** The console's form asks to type the name of the recipient whose data is lost: the browser checks it, and so does this. */
function readConfirmed({ name, confirm, ...fields }: Fields): Fields {
  if (name === undefined || confirm?.trim() !== name) {
    throw problems.malformed(`Nothing was erased: type ${name ?? "the recipient's name"} to confirm.`);
  }
  return leaveOutEmpty(fields);
}

export function forgetEndpoints(deps: AppDeps) {
  return feature("forgetting", "")
    .post(
      "/social/recipients/forget",
      async ({ body, call }) => {
        const find = (contacts: Parameters<typeof findNamed>[0]) => findNamed(contacts, body.recipient);
        const { recipient: _recipient, ...reason } = body;
        const work = forgetPerson(deps, find, { metadata: call.metadata, signal: deps.stopping, reason });
        return toAnswer(deps, work, problems.unknownRecipient);
      },
      route("forgetRecipient", "outreach", ["token", "admin"], {
        body: objectBody({ recipient: recipientName, ...reason }),
        response: { 200: reply("Erased.", forgotten) },
        summary: "Erases a recipient.",
        description: `Deletes the keys of their personal data in the log, and of stored answers that name them. They never get a message again. ${NOT_REACHED}`,
        isSlow: true,
        problems: ["unknownRecipient"],
        form: { path: "/console/recipients/forget", body: readConfirmed, notice: saysErased },
      }),
    )
    .post(
      "/api/tracking/forget",
      async ({ body, call }) => {
        const { ip, ...reason } = body;
        const work = forgetAddress(deps, ip, { metadata: call.metadata, signal: deps.stopping, reason });
        return toAnswer(deps, work, problems.unknownAddress);
      },
      route("forgetClicks", "tracking", ["token", "admin"], {
        body: objectBody({ ip: Type.String({ format: "ip-address", examples: ["203.0.113.7"] }), ...reason }),
        response: { 200: reply("Erased.", forgotten) },
        summary: "Erases the clicks of an IP address.",
        description: `Deletes the keys of its clicks and of the records of its wrong tokens. ${NOT_REACHED}`,
        isSlow: true,
        problems: ["unknownAddress"],
        form: { path: "/console/clicks/forget", notice: saysErased },
      }),
    );
}

/** A service that stops ends the search: nothing was done then. */
async function toAnswer({ stopping }: AppDeps, work: Promise<Forgotten | undefined>, toUnknown: () => Problem) {
  const erased = await appendedOrNothing(work).catch((fault: unknown) => {
    throw stopping.aborted && fault === stopping.reason ? problems.logUnavailable(true) : fault;
  });
  if (erased === undefined) throw toUnknown();
  const { events, keys, id, position } = erased;
  return { events, keys, id, position };
}

function saysErased({ events, keys }: Static<typeof forgotten>): string {
  return `Erased: ${events} ${events === 1 ? "event" : "events"} can no longer be read, ${keys} ${keys === 1 ? "key was" : "keys were"} deleted.`;
}
