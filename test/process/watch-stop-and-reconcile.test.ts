// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import {
  authorize,
  openInstallation,
  until,
  type ListeningService,
  type Installation,
  kill,
  stop,
} from "../harness/process.ts";

const ADA = { id: "1700000000000011000", username: "ada_builds" };
const GRACE = { id: "1700000000000012000", username: "grace_codes" };

/** Makes all leases in the log's database expire. */
function endLeases({ directory }: Installation): void {
  using db = new DatabaseSync(join(directory, "reachlog.sqlite"));
  db.exec("UPDATE leases SET expires_at = 0");
}

/** Imports these recipients, and authorizes a service that `open` starts. */
async function serveWith<Service extends ListeningService>(
  world: Installation,
  people: readonly string[],
  open: () => Promise<Service>,
): Promise<Service> {
  const rows = ["username,basis", ...people.map((username) => `${username},opt_in`)];
  await world.command("recipients", "import", world.file("people.csv", rows.join("\n")));
  const service = await open();
  await authorize(service, world.sandbox);
  return service;
}

/** Starts a command that runs until it is stopped, and collects its output. */
function following(world: Installation, ...args: string[]) {
  const process = world.start(args);
  let [out, err] = ["", ""];
  const read = async (stream: typeof process.stdout, take: (text: string) => void): Promise<void> => {
    for await (const chunk of stream.pipeThrough(new TextDecoderStream())) take(chunk);
  };
  const ended = Promise.all([
    process.exited,
    read(process.stdout, (text) => (out += text)),
    read(process.stderr, (text) => (err += text)),
  ]).then(([code]) => code);
  const said = (wanted: string): Promise<string> =>
    until(
      () => Promise.resolve(out + err),
      (text) => text.includes(wanted),
    );
  return { process, ended, said, out: () => out };
}

test("outreach watch waits for the next run, shows its events and ends with it", async () => {
  await using world = await openInstallation({ x: { dmLimit: 100 } });
  const service = await serveWith(world, ["ada_builds", "closed_carl"], () => world.host());
  const watch = following(world, "outreach", "watch");
  await watch.said("no run is in progress; waiting for the next one\n");
  const run = (await (await service.post("/social/run", undefined, { prefer: "wait=300" })).json()) as {
    run_id: string;
  };
  expect(await watch.ended).toBe(0);
  const [, header, ...lines] = watch.out().trim().split("\n");
  expect(header).toMatch(
    new RegExp(`^run ${run.run_id}, started \\S+Z: 0 sent, 0 skipped, 0 failed, 0 in doubt so far$`),
  );
  expect(lines.join("\n")).toContain(` was sent to @ada_builds (${ADA.id})`);
  expect(lines.join("\n")).toContain("skipped @closed_carl");
  expect(lines.at(-1)).toMatch(/Z ended, completed: 1 sent, 1 skipped, 0 failed, 0 in doubt/);
});

test("outreach watch joins a run in progress, which continues when the watch is interrupted", async () => {
  await using world = await openInstallation({ x: { dmLimit: 100 } });
  const service = await serveWith(world, ["ada_builds", "grace_codes"], () =>
    world.host({ SEND_SPACING_SECONDS: "3600" }),
  );
  await service.post("/social/run");
  await until(
    async () => (await (await service.get("/social/health")).json()) as { run: { sent: number } | null },
    ({ run }) => run?.sent === 1,
  );
  const watch = following(world, "outreach", "watch", "--json");
  await watch.said(" so far\n");
  const joined = following(world, "outreach", "watch");
  await joined.said(": 1 sent, 0 skipped, 0 failed, 0 in doubt so far\n");
  joined.process.kill("SIGINT");
  expect(await joined.ended).toBe(130);
  expect(await (await service.get("/social/health")).json()).toMatchObject({ running: true });

  // A command cannot settle messages during a run, which settles them itself.
  const refused = await world.command("outreach", "reconcile");
  expect(refused).toMatchObject({ code: 75, out: "" });
  expect(refused.err).toMatch(/^run [0-9a-f-]{36} is in progress/m);

  const stopped = stop(service);
  expect(await watch.ended).toBe(0);
  expect(await stopped).toBe(0);
  expect(watch.out().trim().split("\n").at(-1)).toContain('"type":"RunFinished"');
});

test("outreach stop ends another process's run during a wait of an hour", async () => {
  await using world = await openInstallation({ x: { dmLimit: 100 } });
  const service = await serveWith(world, ["ada_builds", "grace_codes"], () =>
    world.host({ SEND_SPACING_SECONDS: "3600" }),
  );
  const key = { "idempotency-key": "today" };
  const { run_id } = (await (await service.post("/social/run", undefined, key)).json()) as { run_id: string };
  await until(
    async () => (await (await service.get("/social/health")).json()) as { run: { waiting: object | null } | null },
    ({ run }) => run?.waiting != null,
  );
  const watch = following(world, "outreach", "watch");
  await watch.said(" so far\n");
  expect(await world.command("outreach", "stop", "--run-id", "another")).toMatchObject({ code: 1 });
  expect(await world.command("outreach", "stop")).toMatchObject({
    code: 0,
    out: "The run is stopping: it sends nothing more.\n",
  });
  expect(await watch.ended).toBe(0);
  expect(watch.out()).toMatch(/Z ended, stopped: 1 sent, 0 skipped, 0 failed, 0 in doubt/);
  expect(await world.command("outreach", "stop")).toMatchObject({
    code: 1,
    err: "No run is in progress, or not the one named.\n",
  });
  // The run with this idempotency key was stopped, so a request with the same key starts another run.
  expect(await (await service.post("/social/run", undefined, key)).json()).not.toMatchObject({ run_id });
});

test("outreach reconcile settles messages in doubt of a running service, and lists unreadable ones", async () => {
  await using world = await openInstallation({ x: { dmLimit: 100, dmReadLimit: 1_000 } });
  const { faults } = world.sandbox;
  const service = await serveWith(world, [ADA.username, GRACE.username], () => world.host());
  // Ada gets the message and Grace does not. X confirms neither message, and the run cannot read the conversations.
  faults.add({ network: "x", kind: "reset_after_delivery", path: `/${ADA.id}/messages`, count: 1 });
  faults.add({ network: "x", kind: "500", path: `/${GRACE.id}/messages`, count: 1 });
  for (const { id } of [ADA, GRACE]) faults.add({ network: "x", kind: "500", path: `/${id}/dm_events` });
  const run = await (await service.post("/social/run", undefined, { prefer: "wait=300" })).json();
  expect(run).toMatchObject({ status: "finished", sent: 0, in_doubt: 2 });

  const unreadable = await world.command("outreach", "reconcile");
  expect(unreadable.code).toBe(1);
  expect(unreadable.out).toStartWith("2 in doubt: 0 found sent, 0 not delivered, 2 still in doubt\n");
  expect(unreadable.out).toMatch(/\n@ada_builds \(\d+\) +20\S+Z {2}[0-9a-f-]{36}\n@grace_codes /);

  expect(unreadable.err.match(/"a message stays in doubt"/g)).toHaveLength(2);

  faults.clear();
  expect(await world.command("outreach", "reconcile")).toEqual({
    code: 0,
    out: "2 in doubt: 1 found sent, 1 not delivered, 0 still in doubt\n",
    err: "2 in doubt: conversations are read twice, 1 s apart, since X may show a message late\n",
  });
  expect(await world.command("outreach", "reconcile")).toMatchObject({ code: 0, out: "nothing is in doubt\n" });
  expect(JSON.parse((await world.command("outreach", "reconcile", "--json")).out)).toEqual({
    in_doubt: 0,
    sent: 0,
    not_delivered: 0,
    still_in_doubt: [],
    closed_run: null,
  });
  expect(world.sandbox.x.accepted).toEqual(new Map([[ADA.id, 1]]));
  // The command recorded the outcomes. Waits until the service has read them in the log.
  await until(
    async () => (await (await service.get("/social/stats")).json()) as { sent: number; failed: number },
    ({ sent, failed }) => sent === 1 && failed === 1,
  );
});

test("outreach reconcile closes the run of a killed service", async () => {
  await using world = await openInstallation({ x: { dmLimit: 100, dmReadLimit: 1_000 } });
  world.sandbox.faults.add({ network: "x", kind: "timeout_after_delivery", path: "/messages", count: 1 });
  const service = await serveWith(world, [ADA.username], () => world.serve());
  await service.post("/social/run");
  await until(
    () => Promise.resolve(world.sandbox.x.accepted.size),
    (size) => size === 1,
  );
  await kill(service);
  // The killed service's lease lasts for another half a minute, so the command is refused.
  expect(await world.command("outreach", "reconcile")).toMatchObject({ code: 75 });
  endLeases(world);
  const settled = await world.command("outreach", "reconcile");
  expect(settled).toMatchObject({ code: 0 });
  expect(settled.out).toMatch(
    /^1 in doubt: 1 found sent, 0 not delivered, 0 still in doubt\nrun [0-9a-f-]{36} was closed after its process died\n$/,
  );
});

test("outreach preview and results show the same template", async () => {
  await using world = await openInstallation({ x: { dmLimit: 100 } });
  const service = await serveWith(world, ["ada_builds", "grace_codes"], () => world.host());
  const before = await world.command("outreach", "preview", "--json");
  const preview = JSON.parse(before.out) as { template: string; undecided: number };
  expect(preview).toMatchObject({
    undecided: 0,
    variants: [{ recipients: 2, text: "Hi [name]: https://go.example/welcome" }],
  });
  await service.post("/social/run", undefined, { prefer: "wait=300" });
  const { rows } = JSON.parse((await world.command("results", "--json")).out) as { rows: object[] };
  expect(rows).toMatchObject([
    { template: preview.template, variant: "A", attempted: 2, sent: 2, reply_rate: { rate: 0 } },
  ]);
  const after = await world.command("outreach", "preview");
  expect(after.out).toContain("\n2 would be skipped, already_contacted: @ada_builds (");
});
