import type { DataOf, EventType, Folded } from "../../events/catalog.ts";
import { DELIVERY_WORDS } from "./words/delivery.ts";
import { OUTREACH_WORDS, RUN_WORDS } from "./words/outreach.ts";
import { nameOf, plain, quoted } from "./words/phrases.ts";

/** Who gets in, and with which key. */
const ACCESS_WORDS = {
  AuthenticationsFailed: ({ address, addresses, failed, turned_away }: DataOf<"AuthenticationsFailed">) => {
    const who = address ?? `${addresses} ${addresses === 1 ? "address" : "addresses"}`;
    const tokens = `${failed} wrong ${failed === 1 ? "token" : "tokens"}`;
    return turned_away === 0 ? `${who} tried ${tokens}` : `${who} tried ${tokens}; turned away ${turned_away} times`;
  },
  KeyRotated: ({ from, to }: DataOf<"KeyRotated">) => `the master key ${from} was replaced by ${to}`,
};

/** The social account that messages are sent from. */
const ACCOUNT_WORDS = {
  AccountAuthorized: ({ user, scopes, expires_at }: DataOf<"AccountAuthorized">) =>
    `the account ${nameOf(user)} was linked with the scopes ${scopes.join(" ")}; its access token lasts until ${expires_at}`,
  TokenRefreshed: ({ user_id, expires_at }: DataOf<"TokenRefreshed">) =>
    `the access token of account ${user_id} was renewed and lasts until ${expires_at}`,
  TokenRefreshFailed: ({ user_id, reason, dead }: DataOf<"TokenRefreshFailed">) =>
    `the access token of account ${user_id} could not be renewed: ${quoted(reason)}` +
    (dead ? "; the grant is dead, and a person has to authorize again" : ""),
  AccountUnlinked: ({ user_id, revoked }: DataOf<"AccountUnlinked">) =>
    `the account ${user_id} was unlinked; ` +
    (revoked ? "the network revoked its tokens" : "the network did not confirm that its tokens are revoked"),
};

/** What each event says, in a sentence. An event of the catalog without words does not compile. */
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
    `the key file ${lost} was accepted as lost: what it encrypted reads as erased; ${replaced_by} takes its place`,
  ProjectionRebuilt: ({ projection, version, position, differences }) => {
    const found =
      differences === undefined
        ? "there was no stored state to compare with"
        : differences === 0
          ? "no difference to the stored state"
          : `${differences} ${differences === 1 ? "difference" : "differences"} to the stored state, corrected`;
    return `the projection ${projection} (version ${version}) was rebuilt up to position ${position}: ${found}`;
  },
};

/** The sentence for an event. It quotes what people wrote, so it is to be made printable. */
export function wordsOf<T extends EventType>({ type, data }: Pick<Folded<T>, "type" | "data">): string {
  const say = WORDS[type] as (data: unknown) => string;
  return say(data);
}
