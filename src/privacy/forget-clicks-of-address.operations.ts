import { Type, type Static, type TObject } from "@sinclair/typebox";
import { erasureReason, KEYS_PER_EVENT_MAX, type ErasureReason } from "../../events/erasure.ts";
import { count, id } from "../platform/common-schemas.ts";
import { countInWords } from "../platform/format-numbers-and-lists.ts";
import { ipAddress } from "../platform/ip-address.ts";
import { operation, refusal, type OperationFile } from "../platform/operation.ts";
import { certifyErasure, forgetAddress, type Forgotten } from "./forget-person-or-address.ts";
import type { Reachlog, WriteContext } from "./log-context-types.ts";

export const NOT_REACHED =
  "Data at networks, in chats and in backups of the key file is not erased. This cannot be undone. A large log takes a while.";

/** Fields of the response to an erasure. */
export const erased = {
  events: Type.Integer({ minimum: 0, description: "Events that can no longer be read." }),
  keys: count,
  id,
  position: Type.Integer({
    minimum: 1,
    description:
      "Of the event that records it; of more than 4,000 keys the first of several, next to each other. `/api/audit/proof/{event}` proves each.",
  }),
};

type Erased = Static<TObject<typeof erased>>;

export function toErasedJson({ events, keys, id: event, position }: Forgotten): Erased {
  return { events, keys, id: event, position };
}

export function describeErased({ events, keys, id: event, position }: Erased): string {
  const lost = `${countInWords(events, "event")} can no longer be read`;
  return `Erased: ${lost}, ${countInWords(keys, "key was", "keys were")} deleted. Position ${position} records it, event ${event}.`;
}

export const certificate: OperationFile<Erased, ErasureReason> = {
  option: "certificate",
  description: "Write a certificate of the erasure to a new file: what was erased, why, and the proof of its event",
  describe({ encryptedLog, clock }: Reachlog, answer, reason) {
    const events = Math.max(1, Math.ceil(answer.keys / KEYS_PER_EVENT_MAX));
    return certifyErasure(encryptedLog, { ...answer, lastPosition: answer.position + events - 1 }, reason, clock);
  },
};

/** Input fields of an erasure: its grounds, and who asked for it. */
export const erasureInput = {
  ground: Type.Optional(
    Type.Union(erasureReason.ground.anyOf, { title: "why", description: "Why, by GDPR article 17(1)." }),
  ),
  requested_by: Type.Optional(
    Type.Union(erasureReason.requested_by.anyOf, { title: "party", description: "On whose request." }),
  ),
};

export const forgetClicks = operation({
  name: "clicks forget",
  id: "forgetClicks",
  tag: "tracking",
  access: ["token", "admin"],
  summary: "Erase the clicks of an IP address.",
  description: `Deletes the keys of its clicks and of the records of its wrong tokens. ${NOT_REACHED}`,
  personalRead: false,
  input: { ip: ipAddress, ...erasureInput },
  positional: ["ip"],
  output: erased,
  refusals: {
    unknown_address: refusal(
      "not_found",
      "No readable event has that address: it was erased already, or never recorded.",
    ),
  },
  confirm: ({ ip }) => `Erase the clicks of ${ip} for good? This cannot be undone.`,
  isSlow: true,
  async run(context: WriteContext, { ip, ...reason }, metadata) {
    const { stopping: signal, onProgress } = context;
    const forgotten = await forgetAddress(context, ip, { metadata, signal, reason, onProgress });
    return forgotten === undefined ? "unknown_address" : toErasedJson(forgotten);
  },
  text: describeErased,
  file: certificate,
  examples: ["203.0.113.7 --yes"],
});
