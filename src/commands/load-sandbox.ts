import { UsageError } from "./command.ts";

/** The one door to the sandbox: loaded when it is wanted, so that a production install needs none of its libraries. */
export async function loadSandbox() {
  try {
    const [{ startSandbox }, settings] = await Promise.all([
      import("../sandbox/sandbox.ts"),
      import("../sandbox/settings.ts"),
    ]);
    const { settingsOf, parseChoice } = settings;
    return { startSandbox, settingsOf, parseChoice };
  } catch (fault) {
    if ((fault as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw fault;
    throw new UsageError("the sandbox needs the development dependencies: run bun install without --production");
  }
}

/** Which of the chat and messaging networks the settings are for. */
export const CHOICE_OPTIONS = {
  chat: { type: "string", default: "slack" },
  messaging: { type: "string", default: "telegram" },
} as const;

export const CHOICE_HELP = `  --chat NAME        slack (the default), discord, google_chat or teams
  --messaging NAME   telegram (the default), line or whatsapp`;

/** What {@link CHOICE_OPTIONS} were given as. Throws a UsageError for networks that there are not. */
export function choiceOf(
  { chat, messaging }: { readonly chat: string; readonly messaging: string },
  { parseChoice }: Awaited<ReturnType<typeof loadSandbox>>,
) {
  const choice = parseChoice(chat, messaging);
  if (choice === undefined) throw new UsageError(`no such network:\n${CHOICE_HELP}`);
  return choice;
}
