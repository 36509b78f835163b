import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { formatEnvValue } from "../../config/env-file.ts";
import { DAILY_LIMIT_MAX, settingNames } from "../../config/schema.ts";
import { SCOPE_NAMES } from "../../config/parse-api-tokens.ts";
import { isLoopback, parseHttpUrl } from "../../config/check-urls-and-plain-http.ts";
import { ServiceError, usageError } from "../../platform/service-error.ts";
import { loadSandbox } from "../development/load-sandbox-and-postgres.ts";
import { Command, JSON_OPTION, readConfig, type MakeCommand } from "../shared/command.ts";
import { makeNewFile } from "../../platform/new-file.ts";
import { PROGRAM } from "../shared/program-invocation.ts";
import { answer, type Terminal } from "../shared/terminal-answers-and-exit-codes.ts";
import { createToken } from "../../config/edit-tokens-file.ts";

const FILE = ".env";

/**
 * The settings at the beginning of a new `.env`, in this order. On a terminal, the operator is asked for those with a
 * question.
 */
const FIRST: readonly { readonly name: string; readonly question?: string }[] = [
  { name: "PUBLIC_URL", question: "Address under which people and X reach the service (empty: this machine only)" },
  { name: "AUTH_POLICY" },
  { name: "API_TOKENS" },
  { name: "DATABASE_URL" },
  { name: "X_CLIENT_ID", question: "Client id of your X app (empty: later)" },
  { name: "X_CLIENT_SECRET", question: "Client secret of that app (empty: a public client, or later)" },
  { name: "X_ACCOUNT", question: "Handle of the account that sends (empty: later)" },
  { name: "MESSAGE_TEMPLATE", question: "The message in one line, or a text file with it (empty: later)" },
  { name: "DAILY_LIMIT", question: `Messages a day (empty: ${DAILY_LIMIT_MAX}, the most)` },
  { name: "QUOTA_TIMEZONE", question: "Time zone of a day, such as Europe/Berlin (empty: UTC)" },
];

const SANDBOX_URL = "http://127.0.0.1:4010";

/** Message template of a trial. It names no person and no offer, so it must be replaced before a real run. */
const TRIAL_MESSAGE = "Hi {{name|there}}, this is a trial message. Reply STOP to get no more.";

type Values = Record<string, string>;

export const init: MakeCommand = (terminal) =>
  new Command("init")
    .summary("write a small .env: ask for the settings that matter")
    .description(
      `Writes .env with the ten settings that matter first, and a token for you. On a
terminal it asks for those that --set does not give. It checks all of them before
it writes, and replaces no file. reachlog settings prints every other setting.`,
    )
    .option("--set <name=value>", "a setting; repeat it for more", collectSettings)
    .option("--sandbox [url]", `point all networks at reachlog sandbox (default: ${SANDBOX_URL})`)
    .option(...JSON_OPTION)
    .examples("reachlog init", "reachlog init --sandbox", "reachlog init --set DAILY_LIMIT=20 --set QUOTA_TIMEZONE=UTC")
    .action(async ({ set = {}, sandbox, json }) => {
      const file = resolve(FILE);
      if (existsSync(file)) throw new ServiceError("conflict", `${file} exists already: nothing is overwritten`);
      const given: Values = { ...(sandbox === undefined ? {} : await trialSettings(sandbox)), ...set };
      const { token, entry } = createToken("operator", { scope: SCOPE_NAMES.join("+") });
      if (given["API_TOKENS"] === undefined) given["API_TOKENS"] = entry;
      // In a trial, the token is written to `.env` so that commands need no further step. A real token is never written
      // there.
      if (sandbox !== undefined) given["REACHLOG_TOKEN"] ??= token;
      const values = protect(sandbox === undefined ? await askForRest(terminal, given) : given);
      if (terminal.signal.aborted) return Number(terminal.signal.reason);
      const config = readConfig({ env: values });
      await makeNewFile(file, formatFile(values));
      for (const warning of config.warnings) terminal.err(`warning: ${warning}\n`);
      const isOwn = values["API_TOKENS"] === entry;
      const made = { file, token: isOwn ? token : null };
      return answer(terminal, json, made, nextSteps(made, config.http.publicUrl, sandbox));
    });

/** Adds a setting that the command line gives as `NAME=value`. Throws a ServiceError (usage) for an unknown name. */
function collectSettings(text: string, earlier: Values = {}): Values {
  const [, name = "", value = ""] = /^([A-Z][A-Z0-9_]*)=(.*)$/s.exec(text) ?? [];
  if (!settingNames.has(name)) throw usageError(`--set needs NAME=value, with a name that reachlog settings prints`);
  return { ...earlier, [name]: value };
}

/** Returns the settings of a trial. It has a separate log, so that trial messages do not get into the real one. */
async function trialSettings(sandbox: string | true): Promise<Values> {
  const { settingsAt } = await loadSandbox();
  const url = sandbox === true ? SANDBOX_URL : sandbox.replace(/\/+$/, "");
  return {
    DATABASE_URL: "sqlite:./data/trial/reachlog.sqlite",
    ...settingsAt(url),
    MESSAGE_TEMPLATE: TRIAL_MESSAGE,
  };
}

/**
 * Asks the operator for each setting that the command line did not give, again until its value is valid. Without a
 * terminal nothing is asked.
 */
async function askForRest(terminal: Terminal, given: Values): Promise<Values> {
  const values = { ...given };
  for (const { name, question } of FIRST) {
    const isGiven = values[name] !== undefined || values[`${name}_FILE`] !== undefined;
    const isOfNoUse = /^X_(?:CLIENT_SECRET|ACCOUNT)$/.test(name) && values["X_CLIENT_ID"] === undefined;
    if (question === undefined || isGiven || isOfNoUse || terminal.ask === undefined) continue;
    for (;;) {
      const typed = (await terminal.ask(`${question}: `)).trim();
      if (terminal.signal.aborted) return values;
      const setting = name === "MESSAGE_TEMPLATE" && existsSync(typed) ? "MESSAGE_TEMPLATE_FILE" : name;
      const answered = typed === "" ? values : protect({ ...values, [setting]: typed });
      const fault = findFault(answered, setting);
      if (fault === undefined) {
        Object.assign(values, answered);
        break;
      }
      terminal.err(`${fault}\n`);
    }
  }
  return values;
}

/**
 * Returns the fault of the setting `name`; undefined if it has none. Faults of other settings do not count, because the
 * operator may correct them in later answers.
 */
function findFault(values: Values, name: string): string | undefined {
  try {
    readConfig({ env: values });
  } catch (fault) {
    if (!(fault instanceof ServiceError) || fault.kind !== "configuration") throw fault;
    return fault.message.split("\n").find((line) => line.startsWith(`${name}: `));
  }
  return undefined;
}

/**
 * Adds the strict access policy if PUBLIC_URL shows that other machines can reach the service. Behind a local proxy,
 * all callers seem to be on this machine, which the default policy trusts.
 */
function protect(values: Values): Values {
  const host = parseHttpUrl(values["PUBLIC_URL"] ?? "")?.hostname;
  return host === undefined || isLoopback(host) ? values : { AUTH_POLICY: "strict", ...values };
}

function formatFile(values: Values): string {
  const example = readFileSync(new URL("../../../.env.example", import.meta.url), "utf8");
  const first = FIRST.map(({ name }) => {
    const file = `${name}_FILE`;
    const set = values[file] === undefined ? name : file;
    const value = values[set];
    const { comment, unset } = findInExample(example, name);
    return `${comment}${value === undefined ? unset : `${set}=${formatEnvValue(value)}`}\n`;
  });
  const isFirst = (name: string): boolean => FIRST.some((one) => name === one.name || name === `${one.name}_FILE`);
  const others = Object.entries(values).filter(([name]) => !isFirst(name));
  return [
    "# Written by reachlog init. reachlog settings prints every setting; a # in front of a line switches it off.\n",
    ...first,
    ...(others.length === 0 ? [] : [others.map(([name, value]) => `${name}=${formatEnvValue(value)}\n`).join("")]),
  ].join("\n");
}

/**
 * Finds in `.env.example` the comment above a setting, and the setting's own line, which is commented out and has the
 * default.
 */
function findInExample(example: string, name: string) {
  const found = new RegExp(`((?:^# (?![A-Z_]+=|---).*\\n)+)^(# ${name}=.*)$`, "m").exec(example);
  return { comment: found?.[1] ?? "", unset: found?.[2] ?? "" };
}

interface Made {
  readonly file: string;
  readonly token: string | null;
}

function nextSteps({ file, token }: Made, publicUrl: string, sandbox: string | true | undefined): string {
  const shown =
    token === null
      ? ""
      : `token  ${token}\n       (signs in to the console and calls the API; it is shown only once)\n`;
  const port = typeof sandbox === "string" ? ` --port ${new URL(sandbox).port}` : "";
  const steps = [
    ...(sandbox === undefined ? [] : [`${PROGRAM} sandbox${port}      (in another terminal)`]),
    `${PROGRAM} doctor`,
    `${PROGRAM} serve`,
    `open ${publicUrl}/setup in a browser: it says what is left to do`,
  ];
  return `${file} is written\n${shown}\n${steps.map((step, at) => `${at + 1}. ${step}\n`).join("")}`;
}
