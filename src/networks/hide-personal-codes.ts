// Hides recipients' codes in events that readers see: in the API, the console, webhooks and the command line.
import type { DataOf } from "../../events/event-types-and-codec.ts";
import { ERASED } from "../../events/declare-personal-members.ts";
import { hideCode } from "../template/short-link.ts";

/**
 * Replaces the codes of one recipient in an event that is shown: with such a code, a reader could click, or opt out, as
 * that recipient. The codes remain in the message, in the stored log, and in an export by the holder of its keys.
 */
export function hideCodes<E extends { readonly type: string; readonly data: unknown }>(event: E): E {
  if (OF_OWN_LINKS.has(event.type)) return { ...event, data: hideOwnCode(event.data as OwnCode) };
  if (event.type === "DirectMessageAttempted") return { ...event, data: showAttempt(event.data as Attempt) };
  return event;
}

/** Types of events that may hold the code of a recipient's own link as their member `code`. */
const OF_OWN_LINKS: ReadonlySet<string> = new Set(["PersonalLinkClicked", "ConversionRecorded", "ConversionReversed"]);

type OwnCode = DataOf<"ConversionRecorded"> | DataOf<"PersonalLinkClicked">;

function hideOwnCode(data: OwnCode): OwnCode {
  const { code = ERASED } = data;
  return code === ERASED ? data : { ...data, code: hideCode(code) };
}

type Attempt = DataOf<"DirectMessageAttempted">;

/**
 * Members of the event that are shown unchanged. The compiler requires an entry for a new member, so that it is decided
 * here whether the member may hold a code.
 */
const WITHOUT_CODES: Readonly<Record<Exclude<keyof Attempt, "text" | "personal_links" | "opt_out_code">, true>> = {
  attempt_id: true,
  run_id: true,
  recipient: true,
  campaign: true,
  follows: true,
  variant: true,
  template: true,
  template_name: true,
  links: true,
  replaced_links: true,
  basis: true,
  source: true,
  account_id: true,
  day: true,
  timezone: true,
  decided_at: true,
};

function showAttempt(data: Attempt): Attempt {
  const { text, personal_links = [], opt_out_code } = data;
  const codes = [...personal_links.map(({ code }) => code), ...(opt_out_code === undefined ? [] : [opt_out_code])];
  if (codes.length === 0) return data;
  const shown = Object.entries(data).filter(([member]) => member in WITHOUT_CODES);
  const links = personal_links.map(({ code, link }) => ({ code: hideCode(code), link }));
  return {
    ...(Object.fromEntries(shown) as Omit<Attempt, "text" | "personal_links" | "opt_out_code">),
    text: codes.reduce((hidden, code) => hidden.replaceAll(code, () => hideCode(code)), text),
    ...(links.length === 0 ? {} : { personal_links: links }),
    ...(opt_out_code === undefined ? {} : { opt_out_code: hideCode(opt_out_code) }),
  };
}
