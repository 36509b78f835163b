// These tests start the service or commands as processes.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { loadOperations } from "../../src/operations.ts";
import { authorize, exported, openInstallation, TOKEN, until, type Installation } from "../harness/process.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";

let world: Installation;
let client: Client;
let clickId: string;

beforeAll(async () => {
  world = await openInstallation();
  const people = ["username,basis", "ada_builds,opt_in", "ben_noconsent,none"].join("\n");
  await world.command("recipients", "import", world.file("people.csv", people));
  await world.command("recipients", "suppress", "carl_asked");
  const service = await world.host();
  await authorize(service, world.sandbox);
  const click = { event: "click", domain: "go.example", short_code: "spring", original_url: "https://shop.example/" };
  clickId = ((await (await service.post("/api/tracking/event", click)).json()) as { id: string }).id;
  await service.post("/social/run", {}, { prefer: "wait=300" });
  const pending = async () => {
    const { channels } = (await (await service.get("/api/health")).json()) as {
      channels: Record<string, { pending: number }>;
    };
    return Object.values(channels).reduce((sum, channel) => sum + channel.pending, 0);
  };
  await until(pending, (count) => count === 0);
  client = await connect(world.env);
});
afterAll(async () => {
  await client.close();
  await world[Symbol.asyncDispose]();
});

async function connect(env: Record<string, string>): Promise<Client> {
  const connected = new Client({ name: "test", version: "1" });
  const [command = "", ...args] = onRuntime(["mcp"]);
  await connected.connect(new StdioClientTransport({ command, args, cwd: world.directory, env }));
  return connected;
}

interface Answered {
  readonly text: string;
  readonly isError: boolean;
}

async function call(name: string, input: Record<string, unknown> = {}): Promise<Answered> {
  const { content, isError = false } = await client.callTool({ name, arguments: input });
  const [first] = content as readonly { readonly text: string }[];
  return { text: first?.text ?? "", isError };
}

/** Calls the tool `name` and returns the objects of its answer, which has one per line. */
async function answersOf(name: string, input?: Record<string, unknown>): Promise<Record<string, unknown>[]> {
  const { text, isError } = await call(name, input);
  expect([name, isError, text]).toEqual([name, false, expect.any(String)]);
  return text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test("each tool is a read operation, and declares that and its input", async () => {
  const { tools } = await client.listTools();
  const operations = (await loadOperations()).filter(({ access }) => access[1] === "read");
  const names = operations.map(({ name }) => name.replaceAll(" ", "_"));
  expect(tools.map(({ name }) => name).sort()).toEqual(names.sort());
  for (const { name, description, annotations, inputSchema } of tools) {
    expect([name, annotations?.readOnlyHint, inputSchema["additionalProperties"]]).toEqual([name, true, false]);
    expect(description?.length).toBeGreaterThan(30);
  }
  expect(client.getInstructions()).toContain("Nothing can be sent, spent or erased");
});

test("a value that looks like an option is not read as one", async () => {
  const { text, isError } = await call("audit_show", { subject: "--as-of" });
  expect([text, isError]).toEqual([expect.stringContaining("is neither a handle"), true]);
});

test("recipients_list filters by the reason of the skip", async () => {
  const { recipients } = JSON.parse((await call("recipients_list", { skipped: "no_consent", limit: 1 })).text) as {
    recipients: readonly object[];
  };
  expect(recipients).toMatchObject([{ username: "ben_noconsent", skipped: ["no_consent"] }]);
});

test("deliveries_show shows the status on each channel", async () => {
  const [{ dispatches } = { dispatches: [] }] = (await answersOf("deliveries_show", { event_id: clickId })) as {
    dispatches?: { channels: { channel: string; status: string }[] }[];
  }[];
  expect(dispatches?.[0]?.channels.map(({ channel, status }) => `${channel} ${status}`)).toEqual([
    "ads skipped",
    "chat delivered",
    "messaging delivered",
  ]);
  expect((await call("deliveries_show", { event_id: "no id" })).isError).toBe(true);
});

test("token_list shows the name and scopes of a token, but not the token", async () => {
  const [{ tokens } = { tokens: [] }] = (await answersOf("token_list")) as { tokens: object[] }[];
  const [caller] = tokens;
  expect(caller).toMatchObject({ name: "tester", scopes: null, expires: null });
  expect(JSON.stringify(caller)).not.toContain(TOKEN);
});

test("clicks, quota, stats, deliveries and deliveries_lag answer", async () => {
  expect((await call("clicks", { link: "go.example/spring" })).text).toContain("go.example");
  expect(await answersOf("quota")).toMatchObject([{ used: 1, limit: 100 }]);
  expect(await answersOf("stats")).toMatchObject([{ sent: 1, failed: 0 }]);
  expect(await answersOf("stats", { as_of: "0" })).toMatchObject([{ sent: 0 }]);
  expect((await call("deliveries_channels")).text).toContain("chat");
  expect(
    await answersOf("deliveries_list", { channel: "ads", status: "in_doubt", link: "go.example", to: "2100-01-01" }),
  ).toMatchObject([{ count: 0, dispatches: [], next: null }]);
  expect((await call("deliveries_list", { error: "teapot" })).text).toContain("an error is one of refused");
  expect((await call("deliveries_lag")).text).toContain('"backlog":0');
});

test("outreach_preview shows the skips of a run, and sends and records nothing", async () => {
  const before = await exported(world);
  const asked = world.sandbox.x.messages.kept.length;
  expect((await call("outreach_preview")).text).toContain("no_consent");
  expect((await call("outreach_preview", { recipient: "ben_noconsent" })).isError).toBe(false);
  expect(world.sandbox.x.messages.kept.length).toBe(asked);
  expect(await exported(world)).toEqual(before);
});

test("no tool appends an event", async () => {
  const before = await exported(world);
  for (const { name } of (await client.listTools()).tools) await call(name, { recipient: "ada_builds" });
  expect(await exported(world)).toEqual(before);
});

test("mcp exits with the end of its input, and at once for a wrong configuration", async () => {
  const child = Bun.spawn(onRuntime(["mcp"]), {
    cwd: world.directory,
    env: world.env,
    stdio: ["pipe", "pipe", "pipe"],
  });
  await child.stdin.end();
  expect(await child.exited).toBe(0);
  expect(await world.start(["mcp"], { DAILY_LIMIT: "101" }).exited).toBe(78);
});

test("with AUDIT_READS a read is recorded with the caller mcp", async () => {
  const audited = await connect({ ...world.env, AUDIT_READS: "on" });
  await audited.callTool({ name: "recipients_show", arguments: { recipient: "@ada_builds" } });
  await audited.close();
  const reads = (await exported(world)).filter(({ type }) => type === "PersonalDataRead");
  expect(reads.map(({ data, meta }) => [data, (meta as { readonly caller?: string }).caller])).toEqual([
    [{ resource: "recipient", recipient: expect.objectContaining({ username: "ada_builds" }), records: 1 }, "mcp"],
  ]);
});
