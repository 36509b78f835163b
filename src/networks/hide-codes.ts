import type { DataOf } from "../../events/catalog.ts";
import { ERASED } from "../../events/encryption.ts";
import { hideCode } from "../template/short-link.ts";

/**
 * Hides the codes of recipients' own links in an event for readers: a holder of the code can click as that recipient.
 * It remains in the message, in the stored log, and in an export by the holder of its keys.
 */
export function hideCodes<E extends { readonly type: string; readonly data: unknown }>(event: E): E {
  if (event.type === "PersonalLinkClicked") return { ...event, data: showClick(event.data as Click) };
  if (event.type === "DirectMessageAttempted") return { ...event, data: showAttempt(event.data as Attempt) };
  return event;
}

type Click = DataOf<"PersonalLinkClicked">;
type Attempt = DataOf<"DirectMessageAttempted">;

function showClick({ code }: Click): Click {
  return { code: code === ERASED ? code : hideCode(code) };
}

/**
 * Members that are shown unchanged. A new member does not compile until it is decided here whether it may hold a code.
 */
const WITHOUT_CODES: Readonly<Record<Exclude<keyof Attempt, "text" | "personal_links">, true>> = {
  attempt_id: true,
  run_id: true,
  recipient: true,
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
  const { text, personal_links = [] } = data;
  if (personal_links.length === 0) return data;
  const shown = Object.entries(data).filter(([member]) => member in WITHOUT_CODES);
  return {
    ...(Object.fromEntries(shown) as Omit<Attempt, "text" | "personal_links">),
    text: personal_links.reduce((hidden, { code }) => hidden.replaceAll(code, () => hideCode(code)), text),
    personal_links: personal_links.map(({ code, link }) => ({ code: hideCode(code), link })),
  };
}
