// These tests call the code directly.
import { expect, test } from "bun:test";
import { describeEndpoints } from "../../src/http/endpoints.ts";
import { isRunnable } from "../../src/commands/shared/command.ts";
import { loadReachlog } from "../../src/commands/shared/root-command.ts";
import type { Terminal } from "../../src/commands/shared/terminal-answers-and-exit-codes.ts";

const reachlog = await loadReachlog();

const ENDPOINTS = describeEndpoints();

/** Name of an operation in the OpenAPI document -> the command that does the same. */
const COMMANDS: Readonly<Record<string, string>> = {
  decideDeliveries: "deliveries decide",
  createCampaign: "campaigns create",
  changeCampaign: "campaigns change",
  endCampaign: "campaigns end",
  discardDeliveries: "deliveries discard",
  resumeDeliveries: "deliveries resume",
  retryDeliveries: "deliveries retry",
  settleDeliveries: "deliveries settle",
  lookUpMessages: "outreach reconcile",
  settleMessages: "outreach settle",
  startRun: "outreach run",
  stopRun: "outreach stop",
  testChannels: "deliveries test",
  importRecipients: "recipients import",
  previewImport: "recipients import",
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

/** Path of the only endpoint that needs no command: it just removes the browser's own cookie. */
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

test("every form of the console has an API operation and a command that do the same", () => {
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

test("every GET of the console is a page, the live tail, or open to programs", () => {
  const isOfPrograms = (path: string): boolean => /^\/(?:api|social)\//.test(path) || path === "/metrics";
  const reading = ENDPOINTS.filter(
    (endpoint) => isOfConsole(endpoint) && endpoint.method === "GET" && !isOfPrograms(endpoint.path),
  );
  for (const { path, answers } of reading) {
    const [answer] = Object.values(answers);
    expect(`${path} ${answer?.mediaType}`).toMatch(/ text\/(html|event-stream)$/);
  }
});

test.each(["deliveries", "deliveries nothing", "recipients forget us"])("%s is not a runnable command", (path) => {
  expect(isCommand(path)).toBe(false);
});
