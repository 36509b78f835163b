import { DAY_MS } from "../../projections/parse-log-times.ts";
import {
  DOMAINS_MAX,
  isDomain,
  isScope,
  parseTokenEnd,
  SCOPE_NAMES,
  TOKEN_SCOPES,
  describeNameFault,
  type TokenScope,
} from "../config/parse-api-tokens.ts";
import { appendEntry, createToken, type Removal, removeToken, resolveTokensFile } from "../config/edit-tokens-file.ts";
import { isoTime, systemClock } from "../platform/clock-ids-and-timers.ts";
import { Command, group, JSON_OPTION, type MakeCommand, Option } from "./shared/command.ts";
import { answer, fail, type Terminal } from "./shared/terminal-answers-and-exit-codes.ts";
import { usageError } from "../platform/service-error.ts";

/** Minimum number of digits of a token's id that `token remove` accepts. A shorter id is probably a typo. */
const ID_DIGITS_MIN = 4;

const make: MakeCommand = (terminal) =>
  new Command("new")
    .summary("create a token for a caller")
    .description(
      `Creates a token for a caller and prints it once, with the entry to configure. The
entry holds only the token's SHA-256.

--scope and --expires say what the token may do, and until when:
${Object.entries(TOKEN_SCOPES)
  .map(([scope, says]) => `  ${scope.padEnd(10)} ${says}`)
  .join("\n")}

Without --scope it may do everything.

To rotate a token without a gap: create a second one with the same name, give it
to the caller, and remove the first one once the caller uses the second.
Until then both are valid, and the log shows the same name for both.`,
    )
    .argument("<name>", "the caller's name")
    .addOption(
      new Option("--scope <name>", "what it may do; repeat the option, or join scopes with +")
        .choices(SCOPE_NAMES)
        .argParser(collectScopes),
    )
    .option("--expires <when>", "days from now, such as 90d, or the last day in UTC on which it is valid", parseExpiry)
    .option("--links <domains>", "the only domains whose clicks it records, joined by +", parseLinks)
    .option("--add", "append the entry to API_TOKENS_FILE; creates a missing file")
    .option(...JSON_OPTION)
    .examples("reachlog token new shortener --scope track --expires 90d --add")
    .action((name, { scope, expires, links, add = false, json }) => {
      const unfit = describeNameFault(name);
      if (unfit !== undefined) throw usageError(unfit);
      if (links !== undefined && scope?.includes("track") !== true) throw usageError("--links needs --scope track");
      const file = resolveTokensFile(terminal.env);
      if (add && file === undefined) throw usageError("--add needs API_TOKENS_FILE: set it");
      const { token, id, entry } = createToken(name, { scope: scope?.join("+"), expires, links });
      if (add && file !== undefined) appendEntry(file, entry);
      const text = `token  ${token}\nid     ${id}\nentry  ${entry}\n`;
      answer(terminal, json, { name, id, token, entry, added: add }, text);
      if (json !== true) terminal.err(add ? `\nThe entry is in ${file}.\n${ONCE}` : `\n${WHERE}${ONCE}`);
    });

function collectScopes(names: string, earlier: readonly TokenScope[] | undefined): readonly TokenScope[] {
  const scopes = names.split("+");
  if (!scopes.every(isScope)) throw usageError(`a scope is one of ${SCOPE_NAMES.join(", ")}`);
  return [...new Set([...(earlier ?? []), ...scopes])];
}

/**
 * Parses when a token expires, and returns the moment in the form of the tokens file. Throws a ServiceError (usage).
 */
function parseExpiry(text: string): string {
  const days = /^([1-9]\d{0,3})d$/.exec(text)?.[1];
  const ms = days === undefined ? parseTokenEnd(text) : systemClock() + Number(days) * DAY_MS;
  if (ms === undefined || ms <= systemClock())
    throw usageError("--expires needs a number of days from now, such as 90d, or a future day, such as 2027-02-24");
  return days === undefined ? text : isoTime(ms).replace(/\.\d+Z$/, "Z");
}

function parseLinks(text: string): string {
  const links = text.split("+");
  if (links.length > DOMAINS_MAX || !links.every(isDomain))
    throw usageError(`--links needs 1 to ${DOMAINS_MAX} domains, joined by +, such as go.example`);
  return text.toLowerCase();
}

const remove: MakeCommand = (terminal) =>
  new Command("remove")
    .summary("remove a token from API_TOKENS_FILE")
    .argument("<id>", `the token's id, or at least ${ID_DIGITS_MIN} digits of its beginning`)
    .option(...JSON_OPTION)
    .examples("reachlog token remove 3f2a9c")
    .action((id, { json }) => removeById(terminal, id, json));

export const token = group(
  "token",
  "create, list and remove the tokens of callers",
  [make, remove],
  `A running service loads a changed API_TOKENS_FILE within three seconds; a
faulty, empty or missing one changes nothing and is reported in the service's own
log. A change of API_TOKENS needs a restart.`,
);

const WHERE = `Configure the entry: append it to API_TOKENS and restart the service, or add it as a
line to API_TOKENS_FILE, which a running service loads.
`;

const ONCE = `The token is shown only once. The caller sends it as "Authorization: Bearer TOKEN".
`;

/** Messages about a token that was not removed, by reason. */
const REFUSALS: Readonly<Record<Exclude<Removal["kind"], "removed">, string>> = {
  unknown: "no token has this id",
  not_in_file: "it is in API_TOKENS: remove it there, and restart",
  ambiguous: "several ids begin with that: give more digits",
  only_one: "it is the only token, and a service does not load a file without tokens: create another token first",
};

function removeById(terminal: Terminal, id: string, json: true | undefined): number | void {
  if (!new RegExp(`^[0-9a-f]{${ID_DIGITS_MIN},64}$`).test(id)) {
    throw usageError(`token remove needs an id as "token list" shows it, or at least ${ID_DIGITS_MIN} digits of it`);
  }
  const removal = removeToken(terminal.env, id);
  if (removal.kind !== "removed") return fail(terminal, REFUSALS[removal.kind]);
  const removed = { name: removal.name, id: removal.id };
  answer(terminal, json, removed, `${removed.name} ${removed.id} is removed\n`);
}
