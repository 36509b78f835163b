import { join } from "node:path";
import { expect, test } from "bun:test";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import {
  authorize,
  exported,
  openInstallation,
  stop,
  until,
  untilListening,
  type Installation,
  type Running,
} from "../harness/process.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";

const PROGRAM = join(import.meta.dirname, "../process/programs/instance-with-short-leases.ts");

/**
 * Starts one of several instances of a log, with leases of a tenth of their usual duration; it ends with its
 * installation.
 */
async function startInstance(world: Installation, children: DisposableStack): Promise<Running> {
  const child = Bun.spawn(onRuntime([], { module: PROGRAM }), {
    cwd: world.directory,
    env: world.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.defer(() => child.kill("SIGKILL"));
  return untilListening(child);
}

interface Health {
  readonly instances: readonly { readonly id: string }[];
  readonly roles: Readonly<Record<string, string>>;
}

async function healthOf(service: Running): Promise<Health> {
  return (await (await service.get("/api/health")).json()) as Health;
}

/** Waits until `service` holds the role. */
async function untilHolding(service: Running, role: string): Promise<void> {
  await until(
    () => healthOf(service),
    ({ instances, roles }) => roles[role] === instances[0]?.id,
  );
}

/** Fault of the sandbox: the network accepts the request, and its answer never arrives. */
const SILENT = { kind: "timeout_after_delivery", count: 1 } as const;

test("another instance replaces a hanging dispatcher, and its dispatch is in doubt, not repeated", async () => {
  await using world = await openInstallation();
  using children = new DisposableStack();
  const { slack } = world.sandbox;
  const first = await startInstance(world, children);
  await untilHolding(first, "dispatcher-chat");
  const second = await startInstance(world, children);

  world.sandbox.faults.add({ network: "slack", ...SILENT });
  expect((await second.post("/api/notify", { message: "the first" })).status).toBe(202);
  await until(
    async () => slack.messages.kept.length,
    (count) => count === 1,
  );
  first.process.kill("SIGSTOP");
  await untilHolding(second, "dispatcher-chat");
  await until(
    () => exported(world),
    (events) => events.some(({ type }) => type === "DispatchInDoubt"),
  );
  expect((await second.post("/api/notify", { message: "the second" })).status).toBe(200);

  first.process.kill("SIGCONT");
  // The first instance's pending request ends only now. Its outcome must not be recorded: the instance has read that it
  // lost its role, or the log refuses the outcome by the lease.
  await until(
    async () => first.log(),
    (log) => /another instance took over a role.*dispatcher-chat/.test(log),
  );
  expect((await first.post("/api/notify", { message: "the third" })).status).toBe(200);
  // An instance that stops in an orderly way releases its role, so the other one gets it immediately.
  expect(await stop(second)).toBe(0);
  await untilHolding(first, "dispatcher-chat");
  expect(slack.messages.kept.map(({ text }) => text.split("\n").at(-1))).toEqual([
    expect.stringContaining("the first"),
    expect.stringContaining("the second"),
    expect.stringContaining("the third"),
  ]);
  const outcomes = (await exported(world)).filter(({ type }) => /^Dispatch(?!Claimed)/.test(type));
  expect(outcomes.map(({ type }) => type)).toEqual(["DispatchInDoubt", "DispatchSucceeded", "DispatchSucceeded"]);
});

test("a run of a hanging instance is abandoned by another, and no recipient gets two messages", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  using children = new DisposableStack();
  const people = 4;
  await addPeople(world, people);
  const first = await startInstance(world, children);
  await authorize(first, world.sandbox);
  const second = await startInstance(world, children);

  world.sandbox.faults.add({ network: "x", path: "/messages", ...SILENT });
  expect((await first.post("/social/run")).status).toBe(202);
  await until(
    async () => arrivals(world).people,
    (count) => count === 1,
  );
  first.process.kill("SIGSTOP");
  // The second instance refuses the request with 409 until the lease has expired and the abandoned run is closed.
  const started = await until(
    () => second.post("/social/run", undefined, { prefer: "wait=300" }),
    ({ status }) => status !== 409,
  );
  expect([started.status, await started.json()]).toMatchObject([200, { reason: "completed", sent: people - 1 }]);

  first.process.kill("SIGCONT");
  await until(
    async () => first.log(),
    (log) => log.includes("a run failed"),
  );
  const { people: reached, mostToOne } = arrivals(world);
  expect([reached, mostToOne]).toEqual([people, 1]);
  const ends = (await exported(world)).flatMap(({ type }) => (/^Run(?:Finished|Abandoned)$/.test(type) ? [type] : []));
  expect(ends).toEqual(["RunAbandoned", "RunFinished"]);
});
