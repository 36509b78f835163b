import type { LogStore } from "../../../events/catalog.ts";
import type { ProjectionName } from "../../../projections/all.ts";
import { closedObject, createCheck } from "../../platform/common-schemas.ts";
import { createLogger } from "../../platform/logger.ts";
import { isReading, readRefusal, type AnyOperation } from "../../platform/operation.ts";
import { ServiceError, usageError } from "../../platform/service-error.ts";
import type { PersonalRead } from "../../privacy/read-audit.ts";
import type { LogReader, StatesAt } from "../../projector/log-reader.ts";
import { parseMoment } from "../../projector/parse-moment.ts";
import { connectNetworks } from "../../service/networks.ts";
import type { OpenedLog } from "../../privacy/open-log.ts";
import { openAccount } from "../../service/outreach.ts";
import { readConfig } from "./command.ts";
import { openExistingLog, openSession, readCaller, recordRead } from "./log-session.ts";
import { contactsNow, foldToMoment } from "./moment.ts";
import { checkNewFile, makeNewFile } from "../../platform/new-file.ts";
import { withProgress } from "./progress.ts";
import { describeFault } from "../../platform/system-fault.ts";
import { answer, EXIT, fail, printable, table, type Terminal } from "./terminal.ts";

/** What the command line adds to the input of an operation. */
interface RunOptions {
  readonly json?: true | undefined;
  readonly csv?: true | undefined;
  /** True: do not ask. */
  readonly yes?: true | undefined;
  /** The path of the operation's file. */
  readonly file?: string | undefined;
}

/** Runs an operation on the configured log, and writes its answer. Returns the exit code. */
export async function runOperation(
  terminal: Terminal,
  described: AnyOperation,
  input: object,
  { json, csv, yes, file }: RunOptions,
): Promise<number> {
  checkInput(described, input);
  if (file !== undefined) checkNewFile(file);
  if (yes !== true && !(await askToConfirm(terminal, described, input))) return fail(terminal, "nothing was done");
  await using context = await openContext(terminal, described);
  if (json === true && described.list !== undefined) return await writeRows(terminal, described, context, input);
  const found = await runOnce(terminal, described, context, input);
  if (csv === true) {
    terminal.out(described.csv!(found, input as never));
    return EXIT.ok;
  }
  const rows = described.table?.(found, input as never);
  const text = described.text(found, input as never);
  const shown = `${text.replace(/\n$/, "").split("\n").map(printable).join("\n")}\n`;
  answer(terminal, json, found, rows === undefined ? shown : `${table(rows.head, rows.rows)}${shown}`);
  if (file === undefined) return EXIT.ok;
  return await writeFile(terminal, described, file, () =>
    described.file!.describe(context as never, found, input as never),
  );
}

/** Throws a ServiceError (usage) that names the argument or option that does not fit. */
function checkInput({ input, positional = [] }: AnyOperation, given: object): void {
  const [misfit] = createCheck(closedObject(input))(given);
  if (misfit === undefined) return;
  const [, member = ""] = misfit.path.split("/");
  const schema = input[member];
  const name = positional.includes(member) ? `<${member}>` : `--${member.replaceAll("_", "-")}`;
  const isOfForm = schema?.["pattern"] !== undefined || schema?.["format"] !== undefined;
  throw usageError(`${name} does not fit: ${(isOfForm && schema.description) || misfit.message}`);
}

/** True if the operation asks nothing, or the operator confirmed. Throws a ServiceError (usage) without a terminal. */
async function askToConfirm({ ask }: Terminal, { name, confirm }: AnyOperation, input: object): Promise<boolean> {
  if (confirm === undefined) return true;
  if (ask === undefined) throw usageError(`${name} asks first: without a terminal it needs --yes`);
  const typed = await ask(`${confirm(input as never)} Type yes: `);
  return typed.trim().toLowerCase() === "yes";
}

type Context = Awaited<ReturnType<typeof openContext>>;

/** Opens what an operation works with, beside a running service. */
export function openContext(terminal: Terminal, described: Pick<AnyOperation, "access">) {
  return isReading(described) ? openReader(terminal) : openWriter(terminal);
}

/** A log to read. All calls for the states of one moment get those of the first: the pages of a list are of one moment. */
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
  return { ...reader, config, projector: undefined, [Symbol.asyncDispose]: store[Symbol.asyncDispose] };
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

/** A log with its projections, and the account where X is configured. */
async function openWriter(terminal: Terminal) {
  await using opening = new AsyncDisposableStack();
  const session = opening.use(await openSession(terminal));
  const clock = session.logClock.now;
  const { social } = connectNetworks(session.config, clock);
  const logger = createLogger(session.config.logLevel, terminal.err, clock);
  const account = social && opening.use(openAccount({ ...session, social, logger, announce: async () => {} }));
  const opened = opening.move();
  return {
    ...session,
    store: session.encryptedLog as LogStore,
    clock,
    account,
    // An interrupted command ends at once: the next process that opens the log finishes what it began.
    stopping: new AbortController().signal,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/**
 * Runs an operation, and records the read of personal data before it returns the answer. Throws a ServiceError for a refusal,
 * with its sentence.
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

/** Writes the rows of all pages, one JSON object a line; with a limit, those of one page. Returns the exit code. */
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

/** Writes the file about an act that is done. Where that fails the act stays. Returns the exit code. */
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
