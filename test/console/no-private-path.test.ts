// On no harness.
import { expect, test } from "bun:test";
import { describeEndpoints } from "../../src/http/endpoints.ts";
import { isRunnable } from "../../src/commands/shared/command.ts";
import { loadReachlog } from "../../src/commands/shared/root-command.ts";
import type { Terminal } from "../../src/commands/shared/terminal.ts";

const reachlog = await loadReachlog();

const ENDPOINTS = describeEndpoints();

/** Maps an operation of the API to the command that does the same. */
const COMMANDS: Readonly<Record<string, string>> = {
  discardDeliveries: "deliveries discard",
  resumeDeliveries: "deliveries resume",
  retryDeliveries: "deliveries retry",
  settleDeliveries: "deliveries settle",
  startRun: "outreach run",
  stopRun: "outreach stop",
  testChannels: "deliveries test",
  importRecipients: "recipients import",
  importSuppressions: "suppressions import",
  suppressRecipient: "recipients suppress",
  recordConsent: "recipients consent",
  retryRecipient: "recipients retry",
  releaseRecipient: "recipients release",
  forgetRecipient: "recipients forget",
  forgetClicks: "clicks forget",
  startVerification: "audit verify",
  askWhatIf: "replay",
};

/** Only changes the browser's own cookie; signing in, its counterpart, is open too. */
const SIGN_OUT = "/session/end";

const isOfConsole = ({ protection }: { readonly protection: string }): boolean =>
  protection === "session" || protection === "form";

/** True if the command line has this command. */
function isCommand(path: string): boolean {
  const silent: Terminal = { env: {}, out() {}, err() {}, interactive: false, signal: AbortSignal.abort() };
  let command = reachlog(silent);
  for (const name of path.split(" ")) {
    const next = command.commands.find((one) => one.name() === name);
    if (next === undefined) return false;
    command = next;
  }
  return isRunnable(command);
}

test("whatever changes something in the console is a form that does what an operation of the API does, and a command", () => {
  const actions = ENDPOINTS.filter(
    (endpoint) => isOfConsole(endpoint) && endpoint.method === "POST" && endpoint.path !== SIGN_OUT,
  );
  expect(actions.length).toBeGreaterThan(0);
  const operations = new Map(
    ENDPOINTS.filter(({ path }) => /^\/(social|api)\//.test(path)).map((endpoint) => [endpoint.id, endpoint]),
  );
  const onlyHere = actions.filter(({ protection, apiOperationId = "" }) => {
    return protection !== "form" || !operations.has(apiOperationId) || !isCommand(COMMANDS[apiOperationId] ?? "");
  });
  expect(onlyHere.map(({ path }) => path)).toEqual([]);
});

test("a page of the console only shows: whatever else is asked for by GET is the live tail, or open to programs", () => {
  const isOfPrograms = (path: string): boolean => /^\/(?:api|social)\//.test(path) || path === "/metrics";
  const reading = ENDPOINTS.filter(
    (endpoint) => isOfConsole(endpoint) && endpoint.method === "GET" && !isOfPrograms(endpoint.path),
  );
  for (const { path, answers } of reading) {
    const [answer] = Object.values(answers);
    expect(`${path} ${answer?.mediaType}`).toMatch(/ text\/(html|event-stream)$/);
  }
});

test.each(["deliveries", "deliveries nothing", "recipients forget us"])(
  "%s is no command that does something",
  (path) => {
    expect(isCommand(path)).toBe(false);
  },
);
