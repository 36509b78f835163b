import type { DataOf, EventType, Folded } from "../../../events/catalog.ts";
import { ACCESS_WORDS } from "./words/access.ts";
import { ACCOUNT_WORDS } from "./words/account.ts";
import { DELIVERY_WORDS } from "./words/delivery.ts";
import { OUTREACH_WORDS } from "./words/outreach.ts";
import { plain } from "./words/phrases.ts";
import { RUN_WORDS } from "./words/run.ts";

/** Says in a sentence what an event tells. An event of the catalog without words does not compile. */
const WORDS: { readonly [T in EventType]: (data: DataOf<T>) => string } = {
  ...OUTREACH_WORDS,
  ...RUN_WORDS,
  ...DELIVERY_WORDS,
  ...ACCOUNT_WORDS,
  ...ACCESS_WORDS,
  RequestAnswered: ({ status }) => `a request with an idempotency key was answered with status ${status}`,
  LogRestored: ({ cause, found_position }) => {
    const from = cause === "restore" ? "restored from a backup" : "made by an import";
    return `the log was ${from}, and opened by a service: it ended at position ${found_position}; what was done since the copy was made may not be in it`;
  },
  LogLossAccepted: ({ reason, expected_position, found_position }) => {
    const known = expected_position === undefined ? "" : `; the checkpoint knew ${expected_position} events`;
    return `a loss of the log was accepted, ${plain(reason)}: it ended at position ${found_position}${known}`;
  },
  PersonForgotten: ({ keys }) =>
    `a person was erased: ${keys.length} ${keys.length === 1 ? "key was" : "keys were"} deleted, and nobody writes to them`,
  PersonalDataExpired: ({ before, days }) =>
    `the personal data of ${days} ${days === 1 ? "day" : "days"} before ${before} was erased, as it had expired`,
  PersonalKeysLost: ({ lost, replaced_by }) =>
    `the key file ${lost} was accepted as lost: what it sealed reads as erased; ${replaced_by} takes its place`,
  ProjectionRebuilt: ({ projection, version, position, differences }) => {
    const found =
      differences === undefined
        ? "there was no stored state to compare with"
        : differences === 0
          ? "no difference to the stored state"
          : `${differences} ${differences === 1 ? "difference" : "differences"} to the stored state, mended`;
    return `the projection ${projection} (version ${version}) was rebuilt up to position ${position}: ${found}`;
  },
};

/** The sentence for an event. It quotes what people wrote, so it is to be made printable. */
export function wordsOf<T extends EventType>({ type, data }: Pick<Folded<T>, "type" | "data">): string {
  const say = WORDS[type] as (data: unknown) => string;
  return say(data);
}
