// On the process harness.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { describeEndpoints } from "../src/http/endpoints.ts";
import { isOperationWord, loadOperations } from "../src/operations.ts";
import type { AnyOperation } from "../src/platform/operation.ts";
import { authorize, BEARER, openInstallation, type Installation, type Running } from "./harness/process.ts";
import { onRuntime } from "./harness/runtime.ts";

const OPERATIONS = await loadOperations();

/** Inputs of each operation, and how its answer begins or what is wrong with the input. */
const INPUTS: Readonly<
  Record<string, readonly (readonly [input: Record<string, string>, expected: object | string])[]>
> = {
  stats: [
    [{}, { sent: 1, skipped: 1, failed: 0 }],
    [{ as_of: "1" }, { sent: 0, skipped: 0, failed: 0, as_of: { position: 1 } }],
    [
      { by: "day", as_of: "1" },
      { sent: 0, timezone: "UTC", periods: expect.any(Array) },
    ],
    [{ as_of: "tomorrow" }, 'a moment is a position, a day or an ISO 8601 time, not "tomorrow"'],
    [{ as_of: "999999" }, "it has no position 999999"],
  ],
  quota: [
    [{}, { counted: "day", used: 1, limit: 100, remaining: 99 }],
    [{ as_of: "0" }, { day: null, used: 0, resets_at: null, as_of: { position: 0, time: null } }],
  ],
  clicks: [
    [{}, { clicks: 1, bots: 0, links: [{ link: "go.example/spring", clicks: 1 }], others: { clicks: 0 } }],
    [{ link: "https://GO.example/spring" }, { clicks: 1, links: [{ link: "go.example/spring" }] }],
    [{ link: "go.example/spring", as_of: "999999" }, "it has no position 999999"],
    [{ link: "spring" }, "a link is written domain/short_code"],
  ],
  runs: [
    [
      {},
      {
        count: 2,
        next: null,
        runs: [
          { number: 2, dry_run: true, caller: "tester" },
          { number: 1, sent: 1, end: "completed" },
        ],
      },
    ],
    [{ limit: "1" }, { runs: [{ number: 2 }], next: 2 }],
    [
      { limit: "1", after: "2" },
      { runs: [{ number: 1, failed: 0 }], next: null },
    ],
    [{ as_of: "1" }, { runs: [], count: 0 }],
  ],
};

/** Inputs that an operation refuses by name, with the slug of the problem. */
const REFUSED: readonly (readonly [name: string, input: Record<string, string>, slug: string])[] = [
  ["clicks", { link: "go.example/never" }, "unknown-link"],
];

/** Inputs that the schema of an operation refuses. */
const UNFIT: readonly (readonly [name: string, input: Record<string, string>])[] = [
  ["stats", { by: "week" }],
  ["runs", { limit: "0" }],
  ["runs", { limit: "501" }],
  ["runs", { limit: "many" }],
  ["runs", { after: "-1" }],
];

let world: Installation;
let service: Running;
let assistant: Client;

beforeAll(async () => {
  world = await openInstallation();
  await world.command(
    "recipients",
    "import",
    world.file("people.csv", "username,basis\nada_builds,opt_in\nben_noconsent,none\n"),
  );
  service = await world.serve();
  const click = { event: "click", domain: "go.example", short_code: "spring", original_url: "https://shop.example/" };
  await service.post("/api/tracking/event", click, BEARER);
  await authorize(service, world.sandbox);
  await service.post("/social/run", {}, { ...BEARER, prefer: "wait=60" });
  await service.post("/social/run", { dry_run: true }, BEARER);
  assistant = new Client({ name: "test", version: "1" });
  const [command = "", ...args] = onRuntime(["mcp"]);
  await assistant.connect(new StdioClientTransport({ command, args, cwd: world.directory, env: world.env }));
});
afterAll(async () => {
  await assistant.close();
  await world[Symbol.asyncDispose]();
});

/** The path of an operation: that of the endpoint with its id. */
function pathOf(id: string): string {
  const endpoint = describeEndpoints().find((one) => one.id === id);
  if (endpoint === undefined) throw new Error(`no endpoint has the id ${id}`);
  return endpoint.path;
}

const overHttp = (id: string, input: Record<string, string>): Promise<Response> =>
  service.get(`${pathOf(id)}?${new URLSearchParams(input)}`, { headers: BEARER });

/** The words of a command line: a positional member is an argument. */
function asWords({ name, positional = [] }: AnyOperation, input: Record<string, string>): string[] {
  const [named, options] = [true, false].map((isNamed) =>
    Object.entries(input).filter(([member]) => positional.includes(member) === isNamed),
  ) as [[string, string][], [string, string][]];
  const flags = options.map(([member, value]) => `--${member.replaceAll("_", "-")}=${value}`);
  return [...name.split(" "), ...named.map(([, value]) => value), ...flags];
}

async function askAssistant(name: string, input: Record<string, unknown>) {
  const { content, isError = false } = await assistant.callTool({ name: name.replaceAll(" ", "_"), arguments: input });
  const [{ text } = { text: "" }] = content as readonly { readonly text: string }[];
  return { text, isError };
}

/** Returns the input as an assistant sends it: numbers are no texts there. */
const asJson = (input: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(input).map(([name, value]) => [name, ["limit", "after"].includes(name) ? Number(value) : value]),
  );

test("each operation has inputs here, and a command and an endpoint", () => {
  expect(Object.keys(INPUTS).toSorted()).toEqual(OPERATIONS.map(({ name }) => name).toSorted());
  for (const { name, id } of OPERATIONS)
    expect([isOperationWord(name.split(" ")[0]), pathOf(id)]).toEqual([true, expect.any(String)]);
});

describe.each(OPERATIONS)("$name", (described) => {
  const { name, id } = described;
  test.each(INPUTS[name] ?? [])(
    "answers %j alike over HTTP, on the command line and to an assistant",
    async (input, expected) => {
      const response = await overHttp(id, input);
      const command = await world.command(...asWords(described, input), "--json");
      const tool = await askAssistant(name, asJson(input));
      if (typeof expected === "string") {
        const { errors = [] } = (await response.json()) as { errors?: { message: string }[] };
        expect([response.status, errors.map(({ message }) => message).join()]).toEqual([
          422,
          expect.stringContaining(expected),
        ]);
        expect([command.code, command.err]).toEqual([2, expect.stringContaining(expected)]);
        expect([tool.isError, tool.text]).toEqual([true, expect.stringContaining(expected)]);
        return;
      }
      const answer = (await response.json()) as unknown;
      expect([response.status, answer]).toMatchObject([200, expected]);
      expect([command.code, command.err]).toEqual([0, ""]);
      expect(JSON.parse(command.out) as unknown).toEqual(answer);
      expect(JSON.parse(tool.text) as unknown).toEqual(answer);
    },
  );

  test("has a text for people that is no JSON", async () => {
    const { code, out } = await world.command(...name.split(" "));
    expect([code, out]).toEqual([0, expect.stringMatching(/\(.*as of position \d+, .*\)\n$/)]);
  });
});

test.each(UNFIT)("%s refuses %j on every surface", async (name, input) => {
  const described = OPERATIONS.find((one) => one.name === name)!;
  expect((await overHttp(described.id, input)).status).toBe(422);
  expect((await world.command(...asWords(described, input))).code).toBe(2);
  expect((await askAssistant(name, asJson(input))).isError).toBe(true);
});

test.each(REFUSED)("%s refuses %j with the same sentence on every surface", async (name, input, slug) => {
  const described = OPERATIONS.find((one) => one.name === name)!;
  const { sentence } = described.refusals![slug.replaceAll("-", "_")]!;
  const response = await overHttp(described.id, input);
  const problem = { type: `urn:reachlog:problem:${slug}`, detail: sentence };
  expect([response.status, await response.json()]).toMatchObject([404, problem]);
  const command = await world.command(...asWords(described, input), "--json");
  expect([command.code, command.out, command.err]).toEqual([1, "", `${sentence}\n`]);
  expect(await askAssistant(name, asJson(input))).toEqual({ text: sentence, isError: true });
});
