// These tests call the code directly.
import { expect, test } from "bun:test";
import { loadConfig, type Config } from "../../src/config/config.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import type { Reachlog } from "../../src/privacy/log-context-types.ts";
import { openReachlog, type Joining, type Membership } from "../../src/service/open-reachlog.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";
import type { LogStore } from "../../events/event-types-and-codec.ts";

const NOW = Date.parse("2026-03-01T08:00:00.000Z");
const ADDED: NewEvent = {
  type: "RecipientAdded",
  data: { recipient: { id: "101", username: "ann" }, basis: "opt_in", fields: {}, source: "list" },
};

function configOf(file: string): Config {
  return loadConfig({ DATABASE_URL: `sqlite:${file}` }, () => "");
}

/**
 * Returns the options with which a service opens a log as its only owner; `join` makes the service an instance of the
 * log.
 */
function owning(join: Joining<Membership>["join"]): Joining<Membership> {
  return { owner: "the test", onCommit: () => {}, observe: (eventLog) => eventLog, join };
}

const member = (end: () => Promise<void> = async () => {}): Membership => {
  return { saves: () => true, [Symbol.asyncDispose]: end };
};

async function add({ eventLog, projector }: Reachlog): Promise<void> {
  await projector.until((await eventLog.append(STREAMS.outreach, [ADDED], {})).last);
}

test("the log, its keys, its vault and its states are open together, and stay for the next process", async () => {
  using folder = temporaryFolder();
  const config = configOf(folder.file("log.sqlite"));
  let hashes: readonly string[];
  {
    await using context = await openReachlog(config);
    await add(context);
    expect(context.projector.state("contacts").people.size).toBe(1);
    expect(context.keyring.isForgotten({ id: "101" })).toBe(false);
    hashes = context.hashesOf({ id: "101" });
    expect(await context.vault.claim("name", NOW + 1, NOW)).toBe(true);
  }
  await using next = await openReachlog(config);
  expect(next.projector.state("contacts").people.size).toBe(1);
  expect(next.hashesOf({ id: "101" })).toEqual(hashes);
  expect(await next.vault.isClaimed("name", NOW)).toBe(true);
});

test("an override replaces a part wherever the context uses it", async () => {
  using folder = temporaryFolder();
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const overrides = { clock: () => NOW, makeId: () => "id-1", random: () => 0.25, holder: "me", write };
  await using context = await openReachlog(configOf(folder.file("log.sqlite")), overrides);
  await add(context);
  const [event] = await Array.fromAsync(context.encryptedLog.read());
  expect([event?.id, event?.time]).toEqual(["id-1", "2026-03-01T08:00:00.000Z"]);
  expect([context.clock(), context.random(), context.holder]).toEqual([NOW, 0.25, "me"]);
  await context.announce("look here", "key");
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { time: "2026-03-01T08:00:00.000Z", level: "warn", message: "look here" },
  ]);
});

test("a service joins the instances of its log before it folds states, and leaves them when it folds no more", async () => {
  using folder = temporaryFolder();
  const config = configOf(folder.file("log.sqlite"));
  const happened: string[] = [];
  const follow = (log: LogStore): LogStore => ({
    ...log,
    async *subscribeBatches(query) {
      happened.push("folds");
      try {
        yield* log.subscribeBatches(query);
      } finally {
        happened.push("folds no more");
      }
    },
  });
  const joining = owning(async ({ eventLog }) => {
    happened.push("joins");
    return member(async () => {
      // The log is still open.
      await eventLog.append(STREAMS.outreach, [ADDED], {});
      happened.push("leaves");
    });
  });
  {
    await using context = await openReachlog(config, { follow }, joining);
    await add(context);
    const second = openReachlog(
      config,
      {},
      owning(async () => member()),
    );
    expect(await second.catch((fault: Error) => fault.message)).toContain("the test");
  }
  expect(happened).toEqual(["joins", "folds", "folds no more", "leaves"]);
});

test("a part that does not open closes those before it", async () => {
  using folder = temporaryFolder();
  const config = configOf(folder.file("log.sqlite"));
  const refused = openReachlog(
    config,
    {},
    owning(() => Promise.reject(new Error("another has other settings"))),
  );
  expect(await refused.catch((fault: Error) => fault.message)).toBe("another has other settings");
  await using context = await openReachlog(
    config,
    {},
    owning(async () => member()),
  );
  expect(context.projector.position).toBe(0);
});
