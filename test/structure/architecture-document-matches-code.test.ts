// These tests call the code directly.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FLOORS } from "./layer-order.ts";

const ROOT = join(import.meta.dirname, "../..");
const text = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
const decisions = [...new Bun.Glob("docs/decisions/*.md").scanSync(ROOT), "docs/performance.md"].map((file) =>
  readFileSync(join(ROOT, file), "utf8"),
);
const files = [
  ...new Bun.Glob("{clients,deploy,events,packaging,projections,src,test}/**/*").scanSync(ROOT),
  ".oxlintrc.json",
].filter((file) => !file.includes("node_modules/"));

const namedIn = (pattern: RegExp, texts: readonly string[] = [text]): readonly string[] => [
  ...new Set(texts.flatMap((one) => [...one.matchAll(pattern)]).map(([, name]) => name!)),
];

test("each file named by the map or a decision exists", () => {
  const named = namedIn(/([\w./-]+\.(?:tsx?|sql|css)\b)/g, [text, ...decisions]);
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`)))).toEqual([]);
});

test("each folder of src is on the map and in the drawing of the floors", () => {
  const rooms = readdirSync(join(ROOT, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const lines = new Set(namedIn(/^ {2}([\w-]+)\/ /gm));
  expect(rooms.map(({ name }) => name).filter((room) => !lines.has(room))).toEqual([]);
  const drawn = new Set(namedIn(/(?:^ ?| {2,}|· )([\w-]+)(?=$| {2,}| ·)/gm));
  expect(FLOORS.flat().filter((room) => !drawn.has(room.replace(/\.ts$/, "")))).toEqual([]);
});

test("each code name in the map or a decision exists in the code", () => {
  const sources = files.filter(
    (file) => /^(?:src|events|projections)\/.*\.tsx?$/.test(file) && !/\/(?:test|faults|bench)\//.test(file),
  );
  const words = new Set(
    [...sources, ".env.example"].flatMap((file) => readFileSync(join(ROOT, file), "utf8").match(/\w+/g) ?? []),
  );
  const named = namedIn(/`([A-Z]+(?:_[A-Z]+)+|[A-Za-z]*[a-z][A-Z]\w*)`/g, [text, ...decisions]);
  expect(named.length).toBeGreaterThan(25);
  expect(named.filter((name) => !words.has(name))).toEqual([]);
});

/** Files that may ask the machine for the time, because they compare it with no event and no other instance. */
const MACHINE_TIME = [
  // The next two files compare the log's clock with the machine's clock, or provide the machine's clock to other code.
  "src/platform/clock-ids-and-timers.ts",
  "src/log/log-time-and-clock-skew.ts",
  // This file reads the machine's clock to see that a lease has ended, even if the machine slept and its monotonic
  // clock stood still meanwhile.
  "src/log/leases-and-roles.ts",
  // These write lines for operators, or tell when this process started.
  "src/platform/log-uncaught-errors-and-continue.ts",
  "src/metrics/metrics.ts",
  "src/service/shown-configuration.ts",
  "src/commands/development/demo.ts",
  "src/commands/doctor.ts",
  "src/service/examine-installation.ts",
  "src/commands/outreach/reconcile.ts",
  "src/commands/serve.ts",
  "src/commands/token.ts",
  // The next files use the machine's clock to record the time of a backup, of a signed head of the log, or of a
  // witness's cosignature.
  "src/commands/audit.ts",
  "src/commands/audit/prove-and-check-proofs.ts",
  "src/backup/make-or-verify-backup.ts",
  "src/backup/put-backup-in-place.ts",
  "src/backup/move-log.ts",
  "src/log/witness-server.ts",
  // These use the machine's time if they get no clock.
  "src/networks/safe-fetch.ts",
  "src/service/connect-networks.ts",
  "src/networks/s3/open-segment-storage.ts",
];

test("only the listed files read the machine's clock; decisions use the log's", () => {
  const asking = files.filter(
    (file) =>
      /^src\/.*\.tsx?$/.test(file) && /\bsystemClock\b|\bDate\.now\b/.test(readFileSync(join(ROOT, file), "utf8")),
  );
  expect(asking.toSorted()).toEqual(MACHINE_TIME.toSorted());
});
