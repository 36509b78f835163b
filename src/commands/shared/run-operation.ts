import type { LogStore } from "../../../events/event-types-and-codec.ts";
import type { ProjectionName } from "../../../projections/all.ts";
import { createDelivery } from "../../delivery/wait-for-outcome.ts";
import { readAllTokens } from "../../config/edit-tokens-file.ts";
import { withSource, type SourcedToken } from "../../config/parse-api-tokens.ts";
import { closedObject, createCheck } from "../../platform/common-schemas.ts";
import { isReading, readRefusal, type AnyOperation } from "../../platform/operation.ts";
import { ServiceError, usageError } from "../../platform/service-error.ts";
import type { PersonalRead } from "../../privacy/record-personal-data-read.ts";
import type { LogReader, StatesAt } from "../../projector/operation-states-as-of.ts";
import { parseMoment } from "../../projector/parse-moment.ts";
import { connectNetworks } from "../../service/connect-networks.ts";
import type { OpenedLog } from "../../privacy/open-log.ts";
import { toOutreachRules } from "../../outreach/run-rules.ts";
import { createFindLinkKeys } from "../../privacy/person-keys.ts";
import { createSuppressionHashes } from "../../privacy/suppression-hashes.ts";
import { openAccount } from "../../service/open-account-and-outreach.ts";
import { readConfig } from "./command.ts";
import { openExistingLog, openExistingReachlog, readCaller, recordRead } from "./open-log-and-record-reads.ts";
import { contactsNow, foldToMoment } from "./as-of-option.ts";
import { checkNewFile, makeNewFile } from "../../platform/new-file.ts";
import { withProgress } from "./progress.ts";
import { describeFault } from "../../platform/describe-system-errors.ts";
import { answer, EXIT, fail, printable, table, type Terminal } from "./terminal-answers-and-exit-codes.ts";

/** Options of every operation's command, besides the members of the operation's input. */
interface RunOptions {
  readonly json?: true | undefined;
  readonly csv?: true | undefined;
  /** True if the command must not ask the operator to confirm. */
  readonly yes?: true | undefined;
  /** Path of the file in which the command describes what the operation did. */
  readonly file?: string | undefined;
}

/** Runs an operation on the configured log, and writes its answer. Returns the exit code. */
export async function runOperation(
  terminal: Terminal,
  described: AnyOperation,
  given: object,
  { json, csv, yes, file }: RunOptions,
): Promise<number> {
  checkInput(described, given);
  if (file !== undefined) checkNewFile(file);
  const { ask } = terminal;
  const asks = yes !== true && described.confirm?.(given as never) !== undefined;
  if (asks && ask === undefined)
    throw usageError(`${described.name} asks for confirmation: add --yes, or run it on a terminal`);
  await using context = await openContext(terminal, described);
  const input = asks ? await holdToNumber(terminal, described, context, given) : given;
  const question = asks ? described.confirm?.(input as never) : undefined;
  if (question !== undefined && !isYes(await ask!(`${question} Type yes: `))) return fail(terminal, "nothing was done");
  if (json === true && described.list !== undefined) return await writeRows(terminal, described, context, input);
  const found = await runOnce(terminal, described, context, input);
  if (csv === true) {
    terminal.out(described.csv!(found, input as never));
    return EXIT.ok;
  }
  const rows = described.table?.(found, input as never);
  const text = described.text(found, input as never).replaceAll(/[^\n]+/g, printable);
  const shown = text.endsWith("\n") ? text : `${text}\n`;
  answer(terminal, json, found, rows === undefined ? shown : `${table(rows.head, rows.rows)}${shown}`);
  if (file === undefined) return described.isPartial?.(found, input as never) === true ? EXIT.fault : EXIT.ok;
  return await writeFile(terminal, described, file, () =>
    described.file!.describe(context as never, found, input as never),
  );
}

/**
 * Checks the input of an operation. Throws a ServiceError (usage) that names the argument or option that does not fit.
 */
function checkInput({ input, positional = [] }: AnyOperation, given: object): void {
  const [misfit] = createCheck(closedObject(input))(given);
  if (misfit === undefined) return;
  const [, member = ""] = misfit.path.split("/");
  const schema = input[member];
  const name = positional.includes(member) ? `<${member}>` : `--${member.replaceAll("_", "-")}`;
  const isOfForm = ["pattern", "format", "anyOf"].some((form) => schema?.[form] !== undefined);
  throw usageError(`${name} does not fit: ${(isOfForm && schema?.description) || misfit.message}`);
}

/**
 * Returns the input that limits an operation to what a dry run has counted, so that the operator is asked about this
 * number. Returns the given input if the operation has no `holdTo`.
 */
async function holdToNumber(terminal: Terminal, described: AnyOperation, context: Context, input: object) {
  if (described.holdTo === undefined) return input;
  return described.holdTo(await runOnce(terminal, described, context, { ...input, dry_run: true }), input as never);
}

function isYes(typed: string): boolean {
  return typed.trim().toLowerCase() === "yes";
}

type Context = Awaited<ReturnType<typeof openContext>>;

/** Opens the context in which an operation runs. A service may use the log at the same time. */
export async function openContext(terminal: Terminal, described: AnyOperation) {
  if (!isReading(described)) return openWriter(terminal);
  return openReader(terminal).catch((fault: unknown) => {
    if (described.isLogOptional === true) return readNoLog(terminal, fault);
    throw fault;
  });
}

/**
 * Opens a log to read. Later reads of the same moment use the states of the first one, so that all pages of a list show
 * the same moment.
 */
async function openReader(terminal: Terminal) {
  const config = readConfig(terminal);
  const store = await openExistingLog(terminal);
  const known = new Map<string, Promise<unknown>>();
  const at = <Name extends ProjectionName>(asOf: string | undefined, ...names: readonly Name[]) => {
    const key = JSON.stringify([asOf, names]);
    if (!known.has(key)) known.set(key, foldAt(terminal, store, names, parseMoment(asOf, config.outreach.timezone)));
    return known.get(key) as Promise<StatesAt<Name>>;
  };
  const reader: LogReader = { store, clock: store.logClock.now, at };
  return {
    ...reader,
    config,
    get configured() {
      return connectNetworks(config).channels.map(({ name }) => name);
    },
    tokens: () => listConfigured(terminal),
    async commonRules() {
      const hashesOf = createSuppressionHashes(await store.vault.stableKey("suppression"));
      const { keyring } = store;
      return toOutreachRules({ config, hashesOf, findLinkKeys: createFindLinkKeys(keyring), keyring });
    },
    projector: undefined,
    [Symbol.asyncDispose]: store[Symbol.asyncDispose],
  };
}

/**
 * Returns the context of an operation that can do without the log, after the log could not be opened. A read of a state
 * rejects with the reason for that.
 */
function readNoLog(terminal: Terminal, fault: unknown): Awaited<ReturnType<typeof openReader>> {
  const at = () => Promise.reject(fault);
  return { tokens: () => listConfigured(terminal), at, async [Symbol.asyncDispose]() {} } as never;
}

/** Returns the configured API tokens. Reads no other setting, so that a fault in another one does not prevent it. */
function listConfigured({ env }: Terminal): readonly SourcedToken[] {
  const { fixed, filed } = readAllTokens(env);
  const all = [...fixed, ...filed];
  return withSource(all, { tokens: all, tokensFile: { fixed } });
}

async function foldAt(
  terminal: Terminal,
  store: OpenedLog,
  names: readonly ProjectionName[],
  moment: StatesAt["moment"],
) {
  const isContactsNow = Object.keys(moment).length === 0 && names.join() === "contacts";
  const folded = isContactsNow ? await contactsNow(store) : await foldToMoment(terminal, store, names, moment);
  return { ...folded, moment };
}

/** Opens a log to write, with its deliveries and, if X is configured, the X account. */
async function openWriter(terminal: Terminal) {
  await using opening = new AsyncDisposableStack();
  const context = opening.use(await openExistingReachlog(terminal));
  const { social, channels } = connectNetworks(context.config, context.clock);
  const account = social && opening.use(openAccount(context, social));
  const opened = opening.move();
  return {
    ...context,
    store: context.encryptedLog as LogStore,
    account,
    delivery: createDelivery(context, channels),
    // This signal never aborts, because an interrupted command ends at once, and the next process that opens the log
    // finishes what it began.
    stopping: new AbortController().signal,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/**
 * Runs an operation. If it read personal data, that is recorded in the log before the answer is returned. A refusal is
 * thrown as a ServiceError with its sentence.
 */
export async function runOnce(
  terminal: Terminal,
  described: AnyOperation,
  context: Context,
  input: object,
): Promise<never> {
  const { refusals, personalRead } = described;
  const runIn = (running: object) => described.run(running as never, input as never, readCaller(terminal));
  const { projector } = context;
  const found = await (projector === undefined
    ? runIn(context)
    : withProgress(terminal, "reading", projector.position, (onProgress) => runIn({ ...context, onProgress })));
  const refused = readRefusal(refusals, found);
  if (refused !== undefined) throw new ServiceError(refused.kind, refused.sentence);
  const disclosed = described.discloses?.(found as never, input as never, context as never) ?? {};
  if (personalRead !== false && disclosed !== "nothing") {
    await recordRead(terminal, context.store, { resource: personalRead, ...disclosed } as PersonalRead);
  }
  return found as never;
}

/**
 * Writes the rows of all pages, or with a limit of one page, as one JSON object on each line. Returns the exit code.
 */
async function writeRows(
  terminal: Terminal,
  described: AnyOperation,
  context: Context,
  input: { readonly limit?: number },
): Promise<number> {
  const largest = { limit: described.input["limit"]?.["maximum"] as number };
  for (let given: object = { ...largest, ...input }; ;) {
    const page: Readonly<Record<string, unknown>> = await runOnce(terminal, described, context, given);
    const rows = page[described.list!] as readonly object[];
    terminal.out(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    if (page["next"] === null || input.limit !== undefined) return EXIT.ok;
    given = { ...given, after: page["next"] };
  }
}

/**
 * Writes the file that describes what the operation did. If writing fails, the operation still counts as done. Returns
 * the exit code.
 */
async function writeFile(
  terminal: Terminal,
  { file: described }: AnyOperation,
  file: string,
  describe: () => Promise<object>,
): Promise<number> {
  try {
    await makeNewFile(file, `${JSON.stringify(await describe(), undefined, 2)}\n`);
    return EXIT.ok;
  } catch (fault) {
    const why = fault instanceof Error ? describeFault(fault) : String(fault);
    return fail(terminal, `no ${described!.option} was written: ${why}`);
  }
}
