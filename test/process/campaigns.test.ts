// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { openPostgresStore } from "eventstore-lite/postgres";
import { newDatabase } from "eventstore-lite/testing";
import { codec, makeEvent, type Event, type LogStore } from "../../events/event-types-and-codec.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { isoTime, makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import {
  authorize,
  BEARER,
  openInstallation,
  stop,
  type Installation,
  type ListeningService,
} from "../harness/process.ts";

const DAY_MS = 24 * 3_600_000;

/** Time of the first run, of the campaign `default`. It is long enough ago for a follow-up. */
const FIRST_RUN_MS = Date.now() - 40 * DAY_MS;

const EVIDENCE = { consent_at: "2026-05-02", consent_source: "fair" };

/**
 * People of the sandbox who got a message of the campaign `default`. The first one did not reply, the second one did.
 */
const WRITTEN = ["ada_builds", "grace_codes"];

/** Writes the beginning of a log: a run of `default`, as a version without campaigns recorded it 40 days ago. */
async function writeFirstRun({ sandbox, env }: Installation): Promise<void> {
  const clock = (): number => FIRST_RUN_MS;
  const url = env["DATABASE_URL"]!;
  await using store: LogStore = url.startsWith("sqlite:")
    ? await openSqliteStore<Event>({ file: url.slice("sqlite:".length), codec, clock })
    : await openPostgresStore<Event>({ url, codec, clock });
  const day = isoTime(FIRST_RUN_MS).slice(0, 10);
  const messages = WRITTEN.flatMap((username): NewEvent[] => {
    const recipient = { id: idOf(sandbox, username), username };
    const outcome = { attempt_id: `first-${username}`, run_id: "first", recipient };
    return [
      { type: "DirectMessageAttempted", data: { ...outcome, text: "Hi", variant: "A", day } },
      { type: "DirectMessageSent", data: { ...outcome, message_id: `first-${username}`, settled_by: "answer" } },
    ];
  });
  const [, replier = ""] = WRITTEN;
  const reply = { recipient: { id: idOf(sandbox, replier) }, message_id: "17", received_at: isoTime(FIRST_RUN_MS) };
  const events: NewEvent[] = [
    ...[...WRITTEN, "mina_designs"].map((username) => addedOf({ username }, EVIDENCE)),
    addedOf({ username: "yuki_dev" }),
    { type: "RunStarted", data: { run_id: "first", dry_run: false } },
    ...messages,
    { type: "DirectMessageReceived", data: reply },
    {
      type: "RunFinished",
      data: { run_id: "first", reason: "completed", sent: 2, skipped: 0, failed: 0, in_doubt: 0 },
    },
  ];
  await store.append(
    STREAMS.outreach,
    events.map(({ type, data }) => makeEvent(type, makeId(), data, { caller: "test" })),
  );
}

function idOf({ x }: Installation["sandbox"], username: string): string {
  return [...x.people.values()].find((person) => person.username === username)!.id;
}

test.each(["in a file", "on PostgreSQL"])(
  "a campaign and a follow-up are created, counted, run and ended over HTTP, in a log %s",
  async (place) => {
    await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
    if (place === "on PostgreSQL")
      Object.assign(world.env, { DATABASE_URL: await newDatabase(), REACHLOG_KEY: "07".repeat(32) });
    await writeFirstRun(world);
    const service = await world.host();
    await authorize(service, world.sandbox);
    expect(await post(service, "create", { name: "spring", text: "spring: hi {{name}}" })).toBe(200);
    const more = { name: "more", text: "more: hi {{name}}", messaged: "default", days: 30 };
    expect(await post(service, "create", more)).toBe(200);
    expect(await post(service, "create", more)).toBe(409);
    expect(await read(service, "/social/campaigns/count?name=more")).toMatchObject({
      known: 4,
      matching: 1,
      due: 1,
      left_out: [
        { reason: "not_messaged", recipients: 2 },
        { reason: "replied", recipients: 1 },
      ],
    });

    expect(await run(service, "more")).toMatchObject([200, { campaign: "more", sent: 1, skipped: 0 }]);
    expect(textsIn(world)).toEqual({ ada_builds: ["more: hi Ada Lovelace"] });
    // This run skips two recipients: one got the follow-up just before, and the consent of the other has no evidence.
    expect(await run(service, "spring")).toMatchObject([200, { campaign: "spring", sent: 2, skipped: 2 }]);
    const texts = {
      ada_builds: ["more: hi Ada Lovelace"],
      grace_codes: ["spring: hi Grace Hopper"],
      mina_designs: ["spring: hi Mina Park"],
    };
    expect(textsIn(world)).toEqual(texts);
    for (const name of ["more", "spring"]) expect(await run(service, name)).toMatchObject([200, { sent: 0 }]);
    expect((await run(service, "summer"))[0]).toBe(422);
    expect(await post(service, "end", { name: "spring" })).toBe(200);
    expect((await run(service, "spring"))[0]).toBe(422);
    expect(textsIn(world)).toEqual(texts);

    const sent = { default: 2, spring: 2, more: 1 };
    expect(await sentByCampaign(service)).toEqual([sent, sent]);
    expect(Object.keys(await read(service, "/social/stats"))).toEqual(["sent", "skipped", "failed", "as_of"]);
    expect(await stop(service)).toBe(0);
    expect(service.log()).not.toContain('"level":"error"');
    const restarted = await world.host();
    expect(await sentByCampaign(restarted)).toEqual([sent, sent]);
    expect((await run(restarted, "spring"))[0]).toBe(422);
    expect(await stop(restarted)).toBe(0);
  },
);

async function post(service: ListeningService, act: string, body: object): Promise<number> {
  return (await service.post(`/social/campaigns/${act}`, body, BEARER)).status;
}

async function run(service: ListeningService, campaign: string): Promise<[status: number, answer: object]> {
  const answer = await service.post("/social/run", { campaign }, { ...BEARER, prefer: "wait=300" });
  return [answer.status, (await answer.json()) as object];
}

async function read(service: ListeningService, path: string): Promise<Record<string, unknown>> {
  return (await (await service.get(path, { headers: BEARER })).json()) as Record<string, unknown>;
}

/** Returns the number of sent messages of each campaign, first by the counts and then by the results. */
async function sentByCampaign(service: ListeningService) {
  const { campaigns } = await read(service, "/social/stats?by=campaign");
  const { rows } = await read(service, "/social/results?by=campaign");
  return [campaigns, rows].map((all) =>
    Object.fromEntries((all as { campaign: string; sent: number }[]).map(({ campaign, sent }) => [campaign, sent])),
  );
}

/** Returns the texts that X has accepted, by the recipients' usernames. */
function textsIn({ sandbox: { x } }: Installation): Record<string, string[]> {
  const texts: Record<string, string[]> = {};
  for (const { recipient_id, text } of x.messages.kept) (texts[x.people.get(recipient_id)!.username] ??= []).push(text);
  return texts;
}
