import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { startPostgres } from "eventstore-lite/testing";
import { signalChat } from "../../sandbox/x/activity-subscriptions-and-stream.ts";
import { deliver } from "../../sandbox/x/messages.ts";
import type { DirectMessage } from "../../sandbox/x/state.ts";
import { createPick } from "../outreach/model/step-scheduler.ts";
import {
  authorize,
  BEARER,
  exported,
  kill,
  openInstallation,
  stop,
  until,
  type Installation,
  type Running,
} from "../harness/process.ts";
import { isWhole } from "../harness/case-count.ts";
import {
  DAY_MS,
  expectAgreement,
  expectRulesKept,
  GAP_DAYS,
  messagesOf,
  TRIAL_CAMPAIGNS,
  TRIAL_NAMES,
  type Kind,
  type Reaction,
  type TrialBooks,
  type TrialCampaign,
} from "./check-trial-campaigns.ts";
import { idle } from "./expect-daily-limit-kept.ts";
import { createFakeClock, fakeClock, type FakeClock } from "./fake-clock.ts";
import { libfaketime } from "./required-tools.ts";
import { expectWhole } from "./expect-whole-log.ts";

/** Number of days that the trial lasts, by the clock of the service, the sandbox and the log's server. */
const DAYS = 60;

/**
 * Days between two starts of the service. After each start there is one run, and the service may be killed during it.
 */
const STEP_DAYS = isWhole ? 1 : 4;

const PEOPLE = isWhole ? 150 : 50;
const LIMIT = isWhole ? 5 : 4;

/** Order of the runs. The follow-up comes days after its first message, so that some recipients have replied before. */
const RUN_ORDER: readonly TrialCampaign[] = ["spring", "summer", "again"];

/** Maximum delay in ms of a kill at a random moment, counted from a message or from the start of a run. */
const KILL_MS_MAX = 40;

const SEED = Number(process.env["FAULT_SEED"] ?? Math.ceil(Math.random() * 1_000_000));

const FIRST_DAY = Date.parse("2027-04-01T09:00:00Z");

/** Kinds of recipients, assigned in turn. Most recipients have all that the campaigns require. */
const KIND_ORDER: readonly Kind[] = [
  "full",
  "full",
  "full",
  "noEvidence",
  "full",
  "forTopic",
  "full",
  "elsewhere",
  "full",
  "closed",
  "full",
  "none",
];

/**
 * After a kill the clocks are mostly moved by this time in ms. Then the lease of the killed run has expired, and the
 * trial need not wait for that.
 */
const LEASE_MS = 35_000;

interface Trial {
  readonly world: Installation;
  readonly books: TrialBooks;
  readonly pick: (choices: number) => number;
  /** Moves the clocks of the service, the sandbox and the log's server. */
  readonly pass: (ms: number) => void;
  readonly counts: Record<"kills" | "accepted" | "unsent" | "random" | "inRuns" | "ended" | "runs", number>;
}

test.skipIf(libfaketime === undefined).each(["in a file", "on PostgreSQL"])(
  `three campaigns over ${DAYS} days with replies, opt-outs and kill -9 agree with X's books, in a log %s`,
  async (place) => {
    console.log(`seed ${SEED} (FAULT_SEED=${SEED} chooses the same moments)`);
    await using stack = new AsyncDisposableStack();
    const world = stack.use(
      await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 10_000, keepAliveMs: 200, lateCommitMs: 200 } }),
    );
    const clock = place === "in a file" ? fakeClock(world) : await moveToServer(world, stack);
    const pass = (ms: number): void => {
      world.sandbox.clock.advance(clock.now() + ms - world.sandbox.clock.now());
      clock.jump(ms);
    };
    pass(FIRST_DAY - clock.now());
    Object.assign(world.env, {
      X_APP_BEARER_TOKEN: world.sandbox.x.appBearer,
      PUBLIC_URL: "http://localhost:0",
      DAILY_LIMIT: String(LIMIT),
      CONTACT_GAP_DAYS: String(GAP_DAYS),
    });
    const own = [...world.sandbox.x.people.values()].find(({ username }) => username === "acme_team")!.id;
    const books: TrialBooks = { kinds: await addTrialPeople(world), reactions: [], own, limit: LIMIT };
    const counts = { kills: 0, accepted: 0, unsent: 0, random: 0, inRuns: 0, ended: 0, runs: 0 };
    const trial: Trial = { world, books, pick: createPick(SEED), pass, counts };
    let service = await world.serve();
    await authorize(service, world.sandbox);
    for (const name of TRIAL_NAMES) await create(service, name);
    for (let day = 0; day < DAYS; day += STEP_DAYS) {
      service = await liveDay(trial, service, RUN_ORDER[(day / STEP_DAYS) % RUN_ORDER.length]!);
      // The service must not run while the clock moves, because it would take so large a step for a wrong clock.
      if (trial.pick(2) === 0) await kill(service);
      else expect(await stop(service)).toBe(0);
      pass(FIRST_DAY + (day + STEP_DAYS) * DAY_MS - clock.now());
      service = await world.serve();
    }
    await idle(service);
    expect((await exported(world)).map(({ type }) => type)).not.toContain("LogRestored");
    const kept = expectRulesKept(world, books);
    const figures = await expectAgreement(world, service, books);
    const by = (kind: Reaction["kind"]) => books.reactions.filter((one) => one.kind === kind).length;
    console.log(
      `three campaigns over ${DAYS} days ${place}: ${JSON.stringify(figures)}; X accepted ${kept.sent} on ${kept.days} days, at most ` +
        `${kept.mostADay} a day of ${LIMIT}; replies ${by("reply")}, stop words ${by("stop")}, pages ${by("page")}, X Chat ${by("hold")}, ` +
        `${counts.inRuns} in runs, on the way already ${kept.onTheWay}; chains ended by them ${kept.endedChains}; ` +
        `runs ${counts.runs}, kills ${counts.kills} (${counts.accepted} accepted, ${counts.unsent} unsent, ${counts.random} random)`,
    );
    expect(kept.endedChains).toBeGreaterThan(0);
    expect(messagesOf(world, own).filter(({ campaign }) => campaign === "again").length).toBeGreaterThan(0);
    expect(counts.kills).toBeGreaterThan(DAYS / STEP_DAYS / 3);
    expect(await stop(service)).toBe(0);
    await expectWhole(world);
  },
);

/** Moves the log to a new server that has the same wrong clock as the service. */
async function moveToServer(world: Installation, stack: AsyncDisposableStack): Promise<FakeClock> {
  const folder = mkdtempSync(join(tmpdir(), "reachlog-clock-"));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const clock = createFakeClock(join(folder, "faketime"));
  // NO_FAKE_STAT shows the server the real times of its files. The service recognises the place of a log by them, so
  // fake times that move with the clock would make the log look restored.
  const server = stack.use(await startPostgres({ environment: { ...clock.env, NO_FAKE_STAT: "1" } }));
  Object.assign(world.env, clock.env, { DATABASE_URL: await server.newDatabase(), REACHLOG_KEY: "07".repeat(32) });
  return clock;
}

/** Adds people of each kind to X, and imports them with their consents. Returns their kinds by their ids. */
async function addTrialPeople({ sandbox, execute, file }: Installation): Promise<Map<string, Kind>> {
  const kinds = new Map<string, Kind>();
  const rows = ["username,basis,consent_at,consent_source,consent_for,city"];
  for (let number = 0; number < PEOPLE; number++) {
    const [id, username, kind] = [
      String(6_000_000_000 + number),
      `trial_${number}`,
      KIND_ORDER[number % KIND_ORDER.length]!,
    ];
    sandbox.x.people.set(id, { id, username, name: "Trial", receives_your_dm: kind !== "closed" });
    kinds.set(id, kind);
    const evidence = kind === "noEvidence" || kind === "none" ? "," : "2027-03-02,fair";
    const basis = kind === "none" ? "none" : "opt_in";
    rows.push(
      `${username},${basis},${evidence},${kind === "forTopic" ? "news" : ""},${kind === "elsewhere" ? "Pisa" : "Rome"}`,
    );
  }
  expect(await execute("recipients", "import", file("trial.csv", rows.join("\n")))).toMatchObject({ code: 0 });
  return kinds;
}

async function create(service: Running, name: TrialCampaign): Promise<void> {
  const text = `${name}: hi {{name|there}}, {{optout}}`;
  const answer = await service.post("/social/campaigns/create", { name, text, ...TRIAL_CAMPAIGNS[name] }, BEARER);
  expect([answer.status, await answer.json()]).toMatchObject([200, { campaign: { name } }]);
}

/**
 * Simulates one day: some recipients react, then a campaign's run starts. During the run others react, and the service
 * may be killed.
 */
async function liveDay(trial: Trial, service: Running, campaign: TrialCampaign): Promise<Running> {
  const { world, pick, pass, counts } = trial;
  await until(
    () => Promise.resolve(world.sandbox.x.activity.connections.size),
    (connections) => connections > 0,
  );
  await reactBeforeRun(trial, service);
  const how = (["none", "accepted", "unsent", "random"] as const)[pick(4)]!;
  using moment = watchMessages(trial, 1 + pick(LIMIT - 1), how);
  counts.runs++;
  const started = await service.post("/social/run", { campaign }, BEARER);
  expect([202, 429]).toContain(started.status);
  if (how === "none" || started.status !== 202) {
    await idle(service);
    return service;
  }
  const isHit = await until(
    async () => moment.isReached() || ((await isIdle(service)) ? "ended" : false),
    (found) => found !== false,
  );
  await Bun.sleep(how === "random" ? pick(KILL_MS_MAX) : 0);
  await kill(service);
  counts.kills++;
  if (isHit === true) counts[how]++;
  world.sandbox.faults.clear();
  if (pick(4) > 0) pass(LEASE_MS);
  const restarted = await world.serve();
  await idle(restarted);
  // If the kill came before the run was recorded, the run's lease still blocks the next run for half a minute. So the
  // request is repeated until it is accepted.
  const status = await until(
    async () => (await restarted.post("/social/run", { campaign }, { ...BEARER, prefer: "wait=300" })).status,
    (answered) => answered !== 409,
  );
  expect([200, 429]).toContain(status);
  await idle(restarted);
  return restarted;
}

async function isIdle(service: Running): Promise<boolean> {
  return !((await (await service.get("/social/health")).json()) as { running: boolean }).running;
}

/**
 * Makes a recipient react when X gets the message with this number in the run. Also adds a fault that delays the next
 * message until the kill.
 */
function watchMessages(
  { world, books, pick, counts }: Trial,
  number: number,
  how: "none" | "accepted" | "unsent" | "random",
) {
  const { messages } = world.sandbox.x;
  const add = messages.add.bind(messages);
  let arrived = 0;
  let isReached = how === "random" && pick(3) === 0;
  messages.add = (message: DirectMessage) => {
    add(message);
    if (message.sender_id !== books.own || ++arrived !== number) return;
    const kind = how === "accepted" ? "timeout_after_delivery" : "timeout_before";
    if (how === "accepted" || how === "unsent")
      world.sandbox.faults.add({ network: "x", kind, path: "/messages", count: 1 });
    else isReached = true;
    const id = chooseMessaged(world, books, pick);
    if (id === undefined) return;
    counts.inRuns++;
    write(world, books, id, pick(3) === 0 ? "stop" : "reply");
  };
  return {
    isReached: () => isReached || (arrived >= number && world.sandbox.faults.list().length === 0),
    [Symbol.dispose]: () => void (messages.add = add),
  };
}

/**
 * Before the run, makes some recipients react: in a direct message that the run will read, on the opt-out page, or in X
 * Chat.
 */
async function reactBeforeRun({ world, books, pick }: Trial, service: Running): Promise<void> {
  const { x } = world.sandbox;
  for (const kind of ["reply", "reply", "stop", "page", "hold"] as const) {
    if (pick(3) > 0) continue;
    const id = chooseMessaged(world, books, pick);
    if (id === undefined) return;
    if (kind === "reply" || kind === "stop") write(world, books, id, kind);
    else if (kind === "page") await optOut(world, books, service, id);
    else {
      signalChat(x, id, books.own);
      books.reactions.push({ id, kind, at: x.clock.now() });
      const isHeld = async () =>
        (await exported(world)).some(
          ({ type, data }) => type === "RecipientHeld" && (data["recipient"] as { id: string }).id === id,
        );
      await until(isHeld, (held) => held);
      if (pick(2) === 0) {
        const handle = `@${x.people.get(id)!.username}`;
        expect(await world.execute("recipients", "release", handle)).toMatchObject({ code: 0 });
      }
    }
  }
}

/** A recipient with a message of ours who has not opted out, chosen at random; undefined if there is none. */
function chooseMessaged(world: Installation, { own, reactions }: TrialBooks, pick: Trial["pick"]): string | undefined {
  const stopped = new Set(reactions.filter(({ kind }) => kind !== "reply").map(({ id }) => id));
  const ids = [...new Set(messagesOf(world, own).map(({ recipient_id: id }) => id))].filter((id) => !stopped.has(id));
  return ids[pick(Math.max(1, ids.length))];
}

function write({ sandbox: { x } }: Installation, books: TrialBooks, id: string, kind: "reply" | "stop"): void {
  books.reactions.push({ id, kind, at: x.clock.now() });
  deliver(x, id, books.own, kind === "stop" ? "Stop, please" : "Sounds good, tell me more");
}

/** Presses the button of the page that the newest message to the recipient links. */
async function optOut(world: Installation, books: TrialBooks, { url }: Running, id: string): Promise<void> {
  const newest = messagesOf(world, books.own).findLast((one) => one.recipient_id === id)!;
  const code = /\/o\/(\S+)/.exec(newest.text)![1]!;
  books.reactions.push({ id, kind: "page", at: world.sandbox.x.clock.now() });
  const answer = await fetch(`${url}/o/${code}`, { method: "POST", body: new URLSearchParams({ do: "stop" }) });
  expect(answer.status).toBe(200);
}
