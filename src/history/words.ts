import type { DataOf, EventType, Folded } from "../../events/catalog.ts";
import { DELIVERY_WORDS } from "./words/delivery.ts";
import { OUTREACH_WORDS, RUN_WORDS } from "./words/outreach.ts";
import { because, nameOf, other, plain, position, quote, say, textOf, time, type Sentence } from "./words/phrases.ts";

/** Who gets in, and with which key. */
const ACCESS_WORDS = {
  AuthenticationsFailed: ({ address, addresses, failed, turned_away }: DataOf<"AuthenticationsFailed">) => {
    const who = address === undefined ? `${addresses} ${addresses === 1 ? "address" : "addresses"}` : other(address);
    const tried = failed + turned_away;
    const limited = turned_away === 0 ? "" : `; ${turned_away} of them got 429`;
    return say`${who} tried ${tried} wrong ${tried === 1 ? "token" : "tokens"}${limited}`;
  },
  KeyRotated: ({ from, to }: DataOf<"KeyRotated">) => say`the master key ${other(from)} was replaced by ${other(to)}`,
};

/** The social account that messages are sent from. */
const ACCOUNT_WORDS = {
  AccountAuthorized: ({ user, scopes, expires_at }: DataOf<"AccountAuthorized">) =>
    say`the account ${other(nameOf(user))} was linked with the scopes ${other(scopes.join(" "))}; its access token lasts until ${time(expires_at)}`,
  TokenRefreshed: ({ user_id, expires_at }: DataOf<"TokenRefreshed">) =>
    say`the access token of account ${other(user_id)} was renewed and lasts until ${time(expires_at)}`,
  TokenRefreshFailed: ({ user_id, reason, dead }: DataOf<"TokenRefreshFailed">) => {
    const end = dead ? "; the grant is dead, and a person has to authorize again" : "";
    return say`the access token of account ${other(user_id)} could not be renewed: ${quote(reason)}${end}`;
  },
  AccountUnlinked: ({ user_id, revoked }: DataOf<"AccountUnlinked">) => {
    const tokens = revoked
      ? "the network revoked its tokens"
      : "the network did not confirm that its tokens are revoked";
    return say`the account ${other(user_id)} was unlinked; ${tokens}`;
  },
};

const RESTORED_BY: Readonly<Record<DataOf<"LogRestored">["cause"], string>> = {
  restore: "restored from a backup",
  import: "made by an import",
  copy: "found in another place than before",
  operator: "said to be restored",
};

/** The log itself, and what it may no longer show. */
const LOG_WORDS = {
  LogRestored: ({ cause, found_position }: DataOf<"LogRestored">) => {
    return say`the log was ${other(RESTORED_BY[cause])}, and opened by a service: it ended at position ${position(found_position)}; what was done since the copy was made may not be in it`;
  },
  LogLossAccepted: ({ reason, expected_position, found_position }: DataOf<"LogLossAccepted">) => {
    const known = expected_position === undefined ? "" : `; the checkpoint knew ${expected_position} events`;
    return say`a loss of the log was accepted, ${plain(reason)}: it ended at position ${position(found_position)}${known}`;
  },
  LogVerified: ({ position: to, checked, result, fault }: DataOf<"LogVerified">) =>
    result === "whole"
      ? say`the log was verified up to position ${position(to)}: it is whole`
      : say`the log was verified up to position ${position(to)}: it is broken behind ${checked} good events${because(fault)}`,
  BackupMade: ({ position: to }: DataOf<"BackupMade">) =>
    say`a backup was made of the log up to position ${position(to)}`,
  BackupRehearsed: ({ position: to }: DataOf<"BackupRehearsed">) =>
    say`the backup up to position ${position(to)} was rehearsed: it can be restored`,
  PersonForgotten: ({ keys }: DataOf<"PersonForgotten">) =>
    say`a person was erased: ${keys.length} ${keys.length === 1 ? "key was" : "keys were"} deleted, and nobody writes to them`,
  PersonalDataExpired: ({ before, days }: DataOf<"PersonalDataExpired">) =>
    say`the personal data of ${days} ${days === 1 ? "day" : "days"} before ${other(before)} was erased, as it had expired`,
  PersonalKeysLost: ({ lost, replaced_by }: DataOf<"PersonalKeysLost">) =>
    say`the key file ${other(lost)} was accepted as lost: what it encrypted reads as erased; ${other(replaced_by)} takes its place`,
  ProjectionRebuilt: ({ projection, version, position: to, differences }: DataOf<"ProjectionRebuilt">) => {
    const found =
      differences === undefined
        ? "there was no stored state to compare with"
        : differences === 0
          ? "no difference to the stored state"
          : `${differences} ${differences === 1 ? "difference" : "differences"} to the stored state, corrected`;
    return say`the projection ${other(projection)} (version ${version}) was rebuilt up to position ${position(to)}: ${found}`;
  },
};

/** What each event says, in a sentence. An event of the catalog without words does not compile. */
const WORDS: { readonly [T in EventType]: (data: DataOf<T>) => Sentence } = {
  ...OUTREACH_WORDS,
  ...RUN_WORDS,
  ...DELIVERY_WORDS,
  ...ACCOUNT_WORDS,
  ...ACCESS_WORDS,
  ...LOG_WORDS,
  RequestAnswered: ({ status }) => say`a request with an idempotency key was answered with status ${status}`,
};

/** The sentence for an event, with what it names. */
export function sentenceOf<T extends EventType>({ type, data }: Pick<Folded<T>, "type" | "data">): Sentence {
  const sayIt = WORDS[type] as (data: unknown) => Sentence;
  return sayIt(data);
}

/** The sentence for an event as text. It quotes what people wrote, so it is to be made printable. */
export function wordsOf<T extends EventType>(event: Pick<Folded<T>, "type" | "data">): string {
  return textOf(sentenceOf(event));
}
