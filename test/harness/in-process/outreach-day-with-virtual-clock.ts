import type { EventStore } from "eventstore-lite";
import type { Event } from "../../../events/event-types-and-codec.ts";
import type { Tokens } from "../../../src/account/tokens.ts";
import { isoTime, type Clock } from "../../../src/platform/clock-ids-and-timers.ts";
import { loadConfig } from "../../../src/config/config.ts";
import { createEventLog, STREAMS, type NewEvent } from "../../../src/log/event-log.ts";
import type { SafeFetch } from "../../../src/networks/safe-fetch.ts";
import { connectNetworks, outbound } from "../../../src/service/connect-networks.ts";
import { openAccount, outreachContext } from "../../../src/service/open-account-and-outreach.ts";
import { createRunner } from "../../../src/outreach/start-run.ts";
import { startSandbox, type Sandbox } from "../../../sandbox/sandbox.ts";
import { settingsOf } from "../../../sandbox/service-settings.ts";
import type { XLimits } from "../../../sandbox/x/state.ts";
import { createVirtualTime, type VirtualTime } from "./self-advancing-clock.ts";
import { authorized } from "../../sandbox/call-simulated-x.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { METADATA, randomId } from "./temporary-log.ts";
import { addedOf } from "./make-recipient-and-click-events.ts";
import { openReachlog } from "../../../src/service/open-reachlog.ts";

const START = "2026-03-02T08:00:00.000Z";
/** Number of recipients on the list: more than the daily limit. */
const PEOPLE = 105;
export const MINUTE_MS = 60_000;

/** Lifetime of X's access tokens. */
const TOKEN_LIFE_MS = 120 * MINUTE_MS;

/**
 * Time in ms, by the simulated clock, that a request takes on its way to X. The answer takes the same time on its way
 * back.
 */
export const WAY_MS = 400;

/** A simulated day of outreach with X's sandbox over real HTTP, on one clock that jumps. */
export interface Day extends AsyncDisposable {
  readonly sandbox: Sandbox;
  readonly time: VirtualTime;
  /**
   * Called before each message is sent, with the number of messages that have arrived so far. A test may replace it.
   */
  beforeSend: (arrived: number) => void;
  run(): ReturnType<typeof performed>;
}

/** Surroundings of a simulated day: X's sandbox, and settings of a service whose log file does not exist yet. */
interface DayPlace {
  readonly sandbox: Sandbox;
  readonly env: Readonly<Record<string, string>>;
}

export interface DayOptions {
  /** Start of the simulated day, ISO 8601. */
  readonly start?: string;
  /**
   * Opens X's sandbox and makes the settings of the simulated day. A test passes a function here if it uses the sandbox
   * and the log after the day; default: both exist only during the day.
   */
  readonly open?: (clock: Clock) => Promise<DayPlace>;
  /** Adds people to X's sandbox, and returns the events that put them on the list. */
  readonly people?: (sandbox: Sandbox) => NewEvent[];
}

export async function openDay(
  x: Partial<XLimits>,
  { start = START, open, people = listedPeople }: DayOptions = {},
): Promise<Day> {
  await using opening = new AsyncDisposableStack();
  const busy = createBusy();
  const time = opening.use(createVirtualTime(start, busy.isBusy));
  const clock = (): number => time.now();
  const { sandbox, env } = await (open?.(clock) ?? openPlace(clock, x, opening));
  const config = loadConfig(env, () => "");
  const opened = opening.use(
    await openReachlog(config, { clock, wallClock: clock, sleep: time.sleep, makeId: randomId }),
  );
  const { encryptedLog: store, projector } = opened;
  const eventLog = createEventLog(busy.watched(store), randomId);
  busy.follow(() => projector.position);
  const fetching = outbound(config);
  const safeFetch: SafeFetch = (url, request) =>
    busy.during(async () => {
      if (url.endsWith("/messages")) day.beforeSend(sandbox.x.accepted.size);
      time.jump(WAY_MS);
      const answer = await fetching(url, request);
      time.jump(WAY_MS);
      return answer;
    });
  const { social } = connectNetworks(config, clock, safeFetch);
  if (social === undefined) throw new Error("X is not configured");
  const announce = async (text: string): Promise<void> => {
    throw new Error(`no operator should be told: ${text}`);
  };
  const context = { ...opened, eventLog, announce };
  const account = opening.use(openAccount(context, social));
  await link(sandbox, account.tokens, clock() + TOKEN_LIFE_MS);
  await eventLog.append(STREAMS.outreach, people(sandbox), METADATA);
  await projector.until((await store.head()).position);
  const runner = opening.use(createRunner(outreachContext(context, account)));
  const running = opening.move();
  const day: Day = {
    sandbox,
    time,
    beforeSend: () => {},
    run: () => performed(runner),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
  return day;
}

async function link(sandbox: Sandbox, tokens: Tokens, expiresAt: number): Promise<void> {
  const { access_token, refresh_token } = await authorized(sandbox);
  const pair = { accessToken: access_token, refreshToken: refresh_token, expiresAt, scopes: [] };
  const account = [...sandbox.x.people.values()].find(({ username }) => username === "acme_team");
  if (account === undefined) throw new Error("the sandbox's account is gone");
  const { id, username, name } = account;
  const data = { user: { id, username, name }, scopes: [], expires_at: isoTime(expiresAt) };
  await tokens.store(pair, [{ type: "AccountAuthorized", data }], METADATA);
}

async function openPlace(clock: Clock, x: Partial<XLimits>, stack: AsyncDisposableStack): Promise<DayPlace> {
  const folder = stack.use(temporaryFolder());
  const sandbox = stack.use(await startSandbox({ clock, x }));
  const file = { DATABASE_URL: `sqlite:${folder.file("log.sqlite")}`, MESSAGE_TEMPLATE: "Hi {{name}}" };
  return { sandbox, env: { ...settingsOf(sandbox), ...file } };
}

/** Adds people to X's sandbox, and returns the events that put them on the list. */
function listedPeople({ x }: Sandbox): NewEvent[] {
  return Array.from({ length: PEOPLE }, (_, number): NewEvent => {
    const person = { id: String(7_000_000_000 + number), username: `person_${number}`, name: `Person ${number}` };
    x.people.set(person.id, { ...person, receives_your_dm: true });
    const recipient = { username: person.username };
    return addedOf(recipient);
  });
}

/**
 * Counts pending work that the event loop does not show: requests, work of the log's thread, and events that are not
 * folded yet.
 */
function createBusy() {
  let underWay = 0;
  let written = 0;
  let position = (): number => 0;
  const during = async <T>(work: () => Promise<T>): Promise<T> => {
    underWay += 1;
    try {
      return await work();
    } finally {
      underWay -= 1;
    }
  };
  return {
    during,
    isBusy: () => underWay > 0 || position() < written,
    follow: (projected: () => number) => {
      position = projected;
    },
    watched: (store: EventStore<Event>): EventStore<Event> => ({
      ...store,
      append: (...args) =>
        during(async () => {
          const appended = await store.append(...args);
          written = Math.max(written, appended.last);
          return appended;
        }),
      head: () => during(() => store.head()),
      streamHead: (stream) => during(() => store.streamHead(stream)),
      leases: {
        ...store.leases,
        acquire: (...args) => during(() => store.leases.acquire(...args)),
        release: (...args) => during(() => store.leases.release(...args)),
      },
    }),
  };
}

async function performed(runner: ReturnType<typeof createRunner>) {
  const triggered = await runner.trigger({ dryRun: false, metadata: METADATA });
  return triggered.kind === "started" ? await triggered.done : undefined;
}
