import { expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { newDatabase } from "eventstore-lite/testing";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import type { OpenedLog } from "../../src/privacy/open-log.ts";
import { withLog } from "../harness/capture-command.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { ended, openInstallation, type Installation } from "../harness/process.ts";
import { isWhole } from "../harness/case-count.ts";

const KILLS = isWhole ? 200 : 20;
/** Number of clicks before each kill. Every second click has an idempotency key. */
const CLICKS = 40;
/**
 * Maximum time in ms from the appearance of the segment's file to a kill, in half of the rounds. The command then still
 * has to handle the keys, append its event and VACUUM, which takes about that long.
 */
const AFTER_FILE_MS_MAX = 60;

const REACHLOG_KEY = Buffer.alloc(32, 7).toString("base64");

interface Click {
  readonly id: string;
  readonly key: string | undefined;
}

function appendClicks(log: OpenedLog, clicks: readonly Click[]) {
  return clicks.map(({ id, key }) => {
    const { append } = createEventLog(log, () => id);
    const click = clickOf({ short_code: "l1", ip: "203.0.113.7" });
    return append(STREAMS.link("go.example", "l1"), [click], {}, key === undefined ? {} : { key, digest: "asked" });
  });
}

const newClicks = (): readonly Click[] =>
  Array.from({ length: CLICKS }, (_, at) => {
    const id = Bun.randomUUIDv7();
    return { id, key: at % 2 === 0 ? `click/${id}` : undefined };
  });

const segmentsIn = (folder: string): readonly string[] =>
  existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".zst")) : [];

/** Kills the command at a random moment of its run if `isEarly`, otherwise soon after its segment's file appears. */
async function killArchiving(world: Installation, folder: string, isEarly: boolean, wholeMs: number): Promise<boolean> {
  const known = segmentsIn(folder).length;
  const command = world.start(["archive", "--before", "2999-01-01"]);
  const over = ended(command);
  if (isEarly) await Bun.sleep(Math.random() * wholeMs);
  else {
    while (segmentsIn(folder).length === known && command.exitCode === null) await Bun.sleep(1);
    await Bun.sleep(Math.random() * AFTER_FILE_MS_MAX);
  }
  command.kill("SIGKILL");
  return (await over).code !== 0;
}

test.each([
  ["a file", async () => ({})],
  ["PostgreSQL", async () => ({ DATABASE_URL: await newDatabase() })],
])(
  `a log in %s loses and duplicates nothing after ${KILLS} times kill -9 of reachlog archive`,
  async (engine, makeEnv) => {
    await using world = await openInstallation();
    const folder = `${world.directory}/segments`;
    Object.assign(world.env, await makeEnv(), { REACHLOG_KEY, ARCHIVE_FOLDER: folder });
    const clicks: Click[] = [];
    const firsts: number[] = [];
    const add = async (log: OpenedLog): Promise<void> => {
      const added = newClicks();
      clicks.push(...added);
      firsts.push(...(await Promise.all(appendClicks(log, added))).map(({ first }) => first));
    };
    await withLog(world.env, add);
    const startedAt = performance.now();
    expect(await world.execute("archive", "--before", "2999-01-01")).toMatchObject({ code: 0 });
    const wholeMs = performance.now() - startedAt;
    let [killed, unrecorded] = [0, 0];
    for (let kill = 0; kill < KILLS; kill += 1) {
      await withLog(world.env, add);
      if (await killArchiving(world, folder, kill % 2 === 0, wholeMs)) killed += 1;
      await withLog(world.env, async (log) => {
        const { position } = await log.head();
        expect(await log.verify()).toMatchObject({ ok: true, checked: position });
        const recorded = (await log.archived()).map(({ name }) => name);
        const files = segmentsIn(folder);
        expect(recorded.filter((name) => !files.includes(name))).toEqual([]);
        if (files.length > recorded.length) unrecorded += 1;
        const keys = (await Array.fromAsync(log.readKeys({ from: 1, to: position }))).flat();
        expect(keys.map(({ key }) => key).toSorted()).toEqual(clicks.flatMap(({ key }) => key ?? []).toSorted());
      });
    }
    expect(await world.execute("archive", "--before", "2999-01-01")).toMatchObject({ code: 0 });
    expect(await world.execute("audit", "verify")).toMatchObject({ code: 0 });
    await withLog(world.env, async (log) => {
      const ids = (await Array.fromAsync(log.readStored({ types: ["LinkClicked"] }))).map(({ id }) => id);
      expect(ids.toSorted()).toEqual(clicks.map(({ id }) => id).toSorted());
      const repeated = await Promise.all(
        appendClicks(
          log,
          clicks.filter(({ key }) => key !== undefined),
        ),
      );
      expect(repeated.map(({ first }) => first)).toEqual(firsts.filter((_, at) => clicks[at]!.key !== undefined));
      expect(repeated.every((one) => one.repeated)).toBe(true);
      // The folder contains exactly the segment files that the log names.
      const recorded = (await log.archived()).map(({ name }) => name);
      expect(segmentsIn(folder).toSorted()).toEqual(recorded.toSorted());
    });
    console.log(
      `kill -9 of reachlog archive on a log in ${engine} ${KILLS}: hit ${killed}, between a segment and its record ` +
        `${unrecorded}; clicks ${clicks.length}, lost 0, doubled 0, keys unknown 0`,
    );
    expect(killed).toBeGreaterThan(KILLS / 4);
  },
);
