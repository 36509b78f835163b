// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { copyFileSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { CLICK } from "../harness/sample-click.ts";
import {
  authorize,
  BEARER,
  exported,
  openInstallation,
  stop,
  TOKEN,
  until,
  type Installation,
  type ListeningService,
} from "../harness/process.ts";
import { readStoredStates } from "../harness/stored-states.ts";

const IP = "203.0.113.77";
const AGENT = "Mozilla/5.0 (AdaPhone)";
const QUERY = "visitor=ada-4711";

/** Everything that the service learns about the recipient in these tests. */
const TRACES = ["ada_builds", "Ada Lovelace", "Analytical Engines", IP, "AdaPhone", "ada-4711"];

function click(ip: string, more: object = {}): object {
  const link = { domain: "go.example", short_code: "welcome", original_url: `https://shop.example/tea?${QUERY}` };
  return { event: "click", ...link, ip, user_agent: AGENT, ...more };
}

/** A service that has sent messages to Ada and Grace, who both clicked. */
async function openContacted(): Promise<{ world: Installation; service: ListeningService; traces: readonly string[] }> {
  const world = await openInstallation();
  world.env["MESSAGE_TEMPLATE"] = "Hi {{name}} of {{company}}: https://go.example/welcome";
  const rows = ["ada_builds,Ada Lovelace,Analytical Engines", "grace_codes,Grace Hopper,Compilers"];
  const file = ["username,name,company,basis", ...rows.map((row) => `${row},opt_in`)].join("\n");
  await world.command("recipients", "import", world.file("people.csv", file));
  rmSync(join(world.directory, "people.csv"));
  const service = await world.host();
  await authorize(service, world.sandbox);
  const run = await service.post("/social/run", {}, { prefer: "wait=300", ...BEARER });
  expect(await run.json()).toMatchObject({ status: "finished", sent: 2 });
  expect((await service.post("/api/tracking/event", click(IP))).status).toBe(202);
  expect(
    (
      await service.post(
        "/api/tracking/event",
        click("198.51.100.9", { user_agent: "Grace/1", original_url: "https://shop.example/tea" }),
      )
    ).status,
  ).toBe(202);
  await settled(service);
  const { id } = [...world.sandbox.x.people.values()].find(({ username }) => username === "ada_builds") ?? { id: "" };
  expect(id).not.toBe("");
  return { world, service, traces: [...TRACES, id] };
}

async function settled(service: ListeningService): Promise<void> {
  const pending = async (): Promise<number[]> => {
    const { channels } = (await (await service.get("/api/health")).json()) as {
      channels: Record<string, { pending: number }>;
    };
    return Object.values(channels).map((channel) => channel.pending);
  };
  await until(pending, (counts) => counts.every((count) => count === 0));
}

/** Returns each of the recipient's traces that a text contains, with the name of that text. Ignores case. */
function found(traces: readonly string[], texts: Readonly<Record<string, string>>): string[] {
  return Object.entries(texts).flatMap(([where, text]) =>
    traces.filter((trace) => text.toLowerCase().includes(trace.toLowerCase())).map((trace) => `${trace} in ${where}`),
  );
}

/** Returns the bytes of all files in the service's folder, and the states that the log stores, uncompressed. */
async function bytesOf({ directory }: Installation): Promise<Record<string, string>> {
  const files = readdirSync(directory).filter((name) => statSync(join(directory, name)).isFile());
  const bytes = files.map((name) => [name, readFileSync(join(directory, name), "latin1")] as const);
  return { ...Object.fromEntries(bytes), ...(await readStoredStates(join(directory, "reachlog.sqlite"))) };
}

/** Returns the cookie of a browser that may use the console. */
async function signIn(service: ListeningService): Promise<string> {
  const signedIn = await service.get("/session", { method: "POST", body: new URLSearchParams({ token: TOKEN }) });
  return signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
}

const PAGES = ["/", "/people", "/links", "/results", "/deliveries", "/activity"];

/** Position of the log at which the recipient is already known and no recipient is forgotten yet. */
const BEFORE = 12;

/** Returns everything that the service and the commands can answer. */
async function answersOf(world: Installation, service: ListeningService): Promise<Record<string, string>> {
  const texts: Record<string, string> = { log: service.log() };
  const pages = PAGES.flatMap((path) => [path, `${path}?as_of=${BEFORE}`]);
  const cookie = await signIn(service);
  for (const path of pages) texts[path] = await (await service.get(path, { headers: { cookie } })).text();
  for (const path of ["/social/health", "/social/stats", "/api/health"]) {
    texts[path] = await (await service.get(path, { headers: BEARER })).text();
  }
  const commands = [
    "audit export",
    "audit export --format csv",
    "audit export --format cloudevents",
    "audit export --encrypted",
  ];
  for (const line of [
    ...commands,
    "recipients list --json",
    `recipients list --json --as-of ${BEFORE}`,
    "stats --json",
    "results --by run --json",
    "clicks",
    "outreach preview",
    "deliveries list",
  ]) {
    const { out, err } = await world.command(...line.split(" "));
    texts[line] = out + err;
  }
  return texts;
}

test("after forget no file, export, page or output contains the recipient, and replay finds no difference", async () => {
  const { world, service, traces } = await openContacted();
  await using _ = world;
  // Proves that the search works: before the erasure, with the keys, it finds every trace.
  const before = await answersOf(world, service);
  expect(found(traces, { export: before["audit export"] ?? "" })).toHaveLength(traces.length);
  const then = [`/people?as_of=${BEFORE}`, `recipients list --json --as-of ${BEFORE}`, `/activity?as_of=${BEFORE}`];
  for (const where of then) expect(before[where]).toContain("ada_builds");
  expect(found(traces, { encrypted: before["audit export --encrypted"] ?? "", ...(await bytesOf(world)) })).toEqual([]);

  expect(await world.command("recipients", "forget", "@Ada_Builds", "--yes")).toMatchObject({ code: 0, err: "" });
  expect(await world.command("clicks", "forget", IP, "--yes")).toMatchObject({ code: 0, err: "" });
  const gone = async (): Promise<string[]> =>
    found(traces, { contacts: (await world.command("recipients", "list")).out });
  await until(gone, (left) => left.length === 0);

  const after = { ...(await answersOf(world, service)), ...(await bytesOf(world)) };
  expect(found(traces, after)).toEqual([]);
  expect(after["audit export"]).toContain("grace_codes");
  expect(after["audit export"]).toContain('"ip":"erased"');
  expect(await world.command("replay")).toMatchObject({ code: 0 });
  expect(await world.command("replay")).toMatchObject({
    code: 0,
    out: expect.not.stringMatching(/[1-9]\d* differences/),
  });
  expect(await world.command("audit", "verify")).toMatchObject({ code: 0 });
  await stop(service);

  const again = await world.host();
  expect(found(traces, { ...(await answersOf(world, again)), ...(await bytesOf(world)) })).toEqual([]);
  // The suppression outlasts the erasure: the same recipient is imported a second time, but gets no message.
  await world.command(
    "recipients",
    "import",
    world.file("p.csv", "username,name,basis,company\nada_builds,Ada,opt_in,A\n"),
  );
  rmSync(join(world.directory, "p.csv"));
  const run = await again.post("/social/run", {}, { prefer: "wait=300", ...BEARER });
  expect(await run.json()).toMatchObject({ status: "finished", sent: 0 });
  expect(found(traces, { ...(await answersOf(world, again)), ...(await bytesOf(world)) })).toEqual([]);
  await stop(again);
});

test("neither an older log nor an older key file brings a forgotten recipient back", async () => {
  const { world, service, traces } = await openContacted();
  await using _ = world;
  const kept = join(world.directory, "kept");
  expect(await world.command("backup", kept)).toMatchObject({ code: 0 });
  await world.command("recipients", "forget", "ada_builds", "--yes");
  await world.command("clicks", "forget", IP, "--yes");
  await stop(service);

  // Puts back the older key file, which still contains the deleted keys. The command applies the log's erasures to it
  // before it shows anything.
  const keys = join(world.directory, "reachlog.keys.sqlite");
  copyFileSync(join(kept, "keys.sqlite"), keys);
  expect(found(traces, { export: (await world.command("audit", "export")).out })).toEqual([]);

  // Restores the older log.
  for (const end of ["", "-wal", "-shm"]) rmSync(join(world.directory, `reachlog.sqlite${end}`), { force: true });
  copyFileSync(join(kept, "log.sqlite"), join(world.directory, "reachlog.sqlite"));
  const restored = await world.host({}, ["--accept-loss"]);
  const events = await exported(world);
  expect(events.some(({ type }) => type === "PersonForgotten")).toBe(false);
  expect(found(traces, { ...(await answersOf(world, restored)), ...(await bytesOf(world)) })).toEqual([]);
  expect(JSON.stringify(events)).toContain("grace_codes");
  await stop(restored);
});

test.each(["restored", "copied"])(
  "an older log that is %s restores no clicks of a recipient who denied tracking since",
  async (how) => {
    await using world = await openInstallation();
    const links = { LINK_BASE: "https://go.example", REDIRECTS: "on", PERSONAL_LINKS: "on" };
    Object.assign(world.env, links, { MESSAGE_TEMPLATE: "{{link https://shop.example/tea}}" });
    const rows = "username,basis,tracking,tracking_at,tracking_source\nada_builds,opt_in,granted,2026-03-02,form\n";
    await world.command("recipients", "import", world.file("people.csv", rows));
    const service = await world.host();
    await authorize(service, world.sandbox);
    expect(await (await service.post("/social/run", {}, { prefer: "wait=300", ...BEARER })).json()).toMatchObject({
      sent: 1,
    });
    const code = /\w+$/.exec(world.sandbox.x.messages.kept.at(-1)!.text)![0];
    const follow = async ({ get }: ListeningService) =>
      expect((await get(`/l/${code}`, { headers: { "user-agent": CLICK.user_agent } })).status).toBe(302);
    const ownClicks = async () => (await exported(world)).filter(({ type }) => type === "PersonalLinkClicked");
    await follow(service);
    expect((await ownClicks()).map(({ data }) => data)).toEqual([{ code }]);

    const kept = join(world.directory, "kept");
    expect(await world.command("backup", kept)).toMatchObject({ code: 0 });
    const denied = ["--tracking", "denied", "--tracking-at", "2026-11-26", "--tracking-source", "mail"];
    expect(await world.command("recipients", "consent", "ada_builds", ...denied)).toMatchObject({ code: 0 });
    await stop(service);

    for (const end of ["", "-wal", "-shm"]) rmSync(join(world.directory, `reachlog.sqlite${end}`), { force: true });
    if (how === "copied") copyFileSync(join(kept, "log.sqlite"), join(world.directory, "reachlog.sqlite"));
    else expect(await world.command("restore", kept)).toMatchObject({ code: 0 });
    const restored = await world.host({}, ["--accept-loss"]);
    expect((await exported(world)).some(({ type }) => type === "ConsentRecorded")).toBe(false);
    await follow(restored);
    expect((await ownClicks()).map(({ data }) => data)).toEqual([{ code: "erased" }]);
    expect((await exported(world)).filter(({ type }) => type === "LinkClicked")).toHaveLength(2);
    await stop(restored);
  },
);

test("a service without its key file needs --accept-lost-keys, and then reads personal data as erased", async () => {
  const { world, service, traces } = await openContacted();
  await using _ = world;
  await stop(service);
  const keys = join(world.directory, "reachlog.keys.sqlite");
  const bytes = readFileSync(keys);
  rmSync(keys);
  const refused = await world.command("serve");
  expect([refused.code, refused.err]).toEqual([78, expect.stringContaining("--accept-lost-keys")]);
  expect(readdirSync(world.directory)).not.toContain("reachlog.keys.sqlite");
  expect(await world.command("recipients", "list")).toMatchObject({ code: 78, out: "" });
  // Commands that only verify or copy need no keys.
  expect(await world.command("audit", "verify")).toMatchObject({ code: 0 });
  expect(await world.command("audit", "export", "--encrypted")).toMatchObject({ code: 0 });

  world.file("reachlog.keys.sqlite", bytes);
  expect((await world.command("recipients", "list")).out).toContain("ada_builds");
  expect(await world.commandWith({ REACHLOG_KEY: "00".repeat(32) }, "recipients", "list")).toMatchObject({ code: 78 });
  expect(readFileSync(keys).equals(bytes)).toBe(true);

  rmSync(keys);
  const bare = await world.host({}, ["--accept-lost-keys"]);
  expect(found(traces, await answersOf(world, bare))).toEqual([]);
  expect((await exported(world)).at(-1)).toMatchObject({ type: "PersonalKeysLost" });
  await stop(bare);
  await stop(await world.host());
});
