/** A push as it was checked: only texts are known here. */
export interface Push {
  readonly to: string;
  readonly messages: readonly { readonly type: "text"; readonly text: string }[];
}

/** https://developers.line.biz/en/reference/messaging-api/#send-push-message */
const MESSAGES_MAX = 5;

/** UTF-16 units: https://developers.line.biz/en/docs/messaging-api/text-character-count/ */
const TEXT_UNITS_MAX = 5_000;

/** What LINE complains of; undefined: nothing. */
export function pushFault(body: unknown): { message: string; property: string } | undefined {
  const { to, messages } = (body ?? {}) as { to?: unknown; messages?: unknown };
  if (typeof to !== "string" || to === "") return { message: "May not be empty", property: "to" };
  if (!Array.isArray(messages) || messages.length < 1 || messages.length > MESSAGES_MAX) {
    return { message: `Size must be between 1 and ${MESSAGES_MAX}`, property: "messages" };
  }
  return (messages as unknown[]).map(messageFault).find((fault) => fault !== undefined);
}

function messageFault(message: unknown, at: number): { message: string; property: string } | undefined {
  const { type, text } = (message ?? {}) as { type?: unknown; text?: unknown };
  if (type !== "text")
    return { message: "Must be one of the following values: [text]", property: `messages[${at}].type` };
  const property = `messages[${at}].text`;
  if (typeof text !== "string" || text === "") return { message: "May not be empty", property };
  if (text.length <= TEXT_UNITS_MAX) return undefined;
  return { message: `Length must be between 0 and ${TEXT_UNITS_MAX}`, property };
}
