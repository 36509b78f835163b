import type { AnyOperation } from "./platform/operation.ts";

/** Loads the files that define operations, each on demand: a command loads only the files that it needs. */
const FILES = {
  audit: () => import("./recipients/history-and-event-effects.operations.ts"),
  campaigns: () => import("./outreach/campaigns/campaigns.operations.ts"),
  account: () => import("./account/account.operations.ts"),
  decisions: () => import("./delivery/retry-discard-settle.operations.ts"),
  delivery: () => import("./delivery/deliveries-lag-and-resume.operations.ts"),
  history: () => import("./history/stats-and-clicks.operations.ts"),
  links: () => import("./links/links.operations.ts"),
  outreach: () => import("./outreach/quota-runs-and-settling.operations.ts"),
  preview: () => import("./outreach/preview.operations.ts"),
  privacy: () => import("./privacy/forget-clicks-of-address.operations.ts"),
  recipients: () => import("./recipients/recipients.operations.ts"),
  report: () => import("./outreach/report/send-team-report.operations.ts"),
  results: () => import("./history/results.operations.ts"),
  tokens: () => import("./privacy/list-api-tokens.operations.ts"),
} as const;

/**
 * Maps the first word of an operation's name to the files (keys of FILES) that define operations with this word. A
 * command loads only those of its own word.
 */
const WORDS: Readonly<Record<string, readonly (keyof typeof FILES)[]>> = {
  recipients: ["recipients"],
  results: ["results"],
  stats: ["history"],
  outreach: ["outreach", "preview"],
  campaigns: ["campaigns"],
  quota: ["outreach"],
  runs: ["outreach"],
  report: ["report"],
  clicks: ["history", "privacy"],
  links: ["links"],
  audit: ["audit"],
  account: ["account"],
  token: ["tokens"],
  deliveries: ["delivery", "decisions"],
};

/** True if an operation's name begins with this word. */
export function isOperationWord(word: string | undefined): word is string {
  return word !== undefined && Object.hasOwn(WORDS, word);
}

/** Returns the operations whose names begin with a word, or all of them in the order of the words. */
export async function loadOperations(word?: string): Promise<readonly AnyOperation[]> {
  const words = word === undefined ? Object.keys(WORDS) : [word];
  const files = new Set(words.flatMap((one) => WORDS[one]!));
  const loaded = await Promise.all([...files].map(async (file) => Object.values(await FILES[file]())));
  const all = loaded.flat().filter(isOperation) as readonly AnyOperation[];
  return words.flatMap((one) => all.filter(({ name }) => name.split(" ")[0] === one));
}

function isOperation(exported: unknown): boolean {
  return typeof exported === "object" && exported !== null && "run" in exported && "output" in exported;
}
