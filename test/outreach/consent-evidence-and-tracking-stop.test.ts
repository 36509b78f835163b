// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { findContact } from "../../projections/contact-identity.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { person } from "../harness/in-process/social-network.ts";
import { openOutreach, RULES, type OutreachHarness } from "../harness/in-process/simulated-outreach-processes.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const MINUTE_MS = 60_000;

describe("with REQUIRE_CONSENT=evidence", () => {
  const rules = { ...RULES, requireConsent: "evidence" } as const;

  test("a run records one skip per gap in the evidence, and sends once the evidence is complete", async () => {
    await using world = await openOutreach("10");
    const { run } = await world.start({ rules });
    const details = async () => (await world.events("DirectMessageSkipped")).map(({ data }) => data.detail);
    const record = (data: object): NewEvent => ({
      type: "ConsentRecorded",
      data: { recipient: { id: "10" }, basis: "opt_in", ...data },
    });
    expect(await run()).toMatchObject({ sent: 0, skipped: 1 });
    expect(await run()).toMatchObject({ sent: 0, skipped: 0 });
    expect(await details()).toEqual(["consent_at and consent_source are missing"]);
    await world.append([record({ consent_at: "2026-02-01" })]);
    expect(await run()).toMatchObject({ sent: 0, skipped: 1 });
    await world.append([addedOf({ id: "10" }, { consent_source: "form" })]);
    expect(await run()).toMatchObject({ sent: 0, skipped: 1 });
    expect((await details()).slice(1)).toEqual(["consent_source is missing", "consent_at is missing"]);
    await world.append([record({ consent_at: "2026-02-01", consent_source: "form" })]);
    expect(await run()).toMatchObject({ sent: 1, skipped: 0 });
  });

  test("a run skips twelve recipients with incomplete evidence, and names what is missing", async () => {
    const at = { consent_at: "2026-02-01" };
    const source = { consent_source: "https://shop.example/form" };
    const BOTH = "consent_at and consent_source are missing";
    const NONE = "basis, consent_at and consent_source are missing";
    const [NO_DATE, NO_SOURCE] = ["consent_at is missing", "consent_source is missing"];
    type Row = Parameters<typeof addedOf>[1];
    const record = (data: object) => (id: string) =>
      ({ type: "ConsentRecorded", data: { recipient: { id }, ...data } }) as NewEvent;
    const row = (more: Row) => (id: string) => addedOf({ id }, more);
    const kinds: readonly (readonly [readonly ((id: string) => NewEvent)[], string])[] = [
      [[row({})], BOTH],
      [[row({ basis: "none" })], NONE],
      [[row({ basis: "none", ...at, ...source })], NONE],
      [[row({ basis: "dm_first" })], BOTH],
      [[row(at)], NO_SOURCE],
      [[row(source)], NO_DATE],
      [[row({ consent_text: "Yes" })], BOTH],
      [[row({ consent_text: "Yes", ...at })], NO_SOURCE],
      [[row({ tracking: "granted", tracking_at: "2026-02-01", tracking_source: "form" })], BOTH],
      [[row(at), record({ basis: "opt_in", ...source })], NO_DATE],
      [[row({ ...at, ...source }), record({ basis: "dm_first" })], BOTH],
      [[row({ ...at, ...source }), row({ basis: "none" })], NONE],
    ];
    const ids = kinds.map((_kind, nth) => String(30 + nth));
    await using world = await openOutreach();
    for (const id of [...ids, "60"]) world.network.people.set(id, person(id));
    await world.append(kinds.flatMap(([events], nth) => events.map((make) => make(ids[nth] ?? ""))));
    await world.append([addedOf({ id: "60" }, { ...at, ...source })]);
    const { run } = await world.start({ rules });
    expect(await run()).toMatchObject({ sent: 1, skipped: 12 });
    expect(await run()).toMatchObject({ sent: 0 });
    expect(world.network.accepted.map(({ recipientId }) => recipientId)).toEqual(["60"]);
    const skips = (await world.events("DirectMessageSkipped")).filter(({ data }) => data.reason === "no_consent");
    expect(skips.map(({ data: { recipient, detail } }) => [recipient.id, detail])).toEqual(
      kinds.map(([, detail], nth) => [ids[nth], detail]),
    );
  });

  test("a recipient who wrote first needs no evidence, in a run and in a dry run", async () => {
    await using world = await openOutreach("10", "11");
    world.network.receive("10", "hello");
    world.time.jump(11 * MINUTE_MS);
    const { run } = await world.start({ rules });
    const { preview } = await run({ dryRun: true });
    expect(preview?.would_send).toMatchObject([{ recipient: { id: "10" } }]);
    const detail = "consent_at and consent_source are missing";
    expect(preview?.would_skip).toEqual([{ recipient: { id: "11" }, reason: "no_consent", detail }]);
    expect(await run()).toMatchObject({ sent: 1, skipped: 1 });
  });
});

describe("a reply that asks to stop tracking", () => {
  const granted = (id: string): NewEvent =>
    addedOf({ id, username: `user_${id}` }, { tracking: "granted", tracking_at: "2026-02-01" });
  const linked = (id: string, ...codes: readonly string[]): readonly NewEvent[] => {
    const attempt = { attempt_id: `a${id}`, run_id: "r0", recipient: { id, username: `user_${id}` } };
    const personal_links = codes.map((code) => ({ code, link: "go.example/shared" }));
    return [
      {
        type: "DirectMessageAttempted",
        data: { ...attempt, text: "Hi", variant: "A", personal_links, day: "2026-03-01" },
      },
      { type: "DirectMessageSent", data: { ...attempt, message_id: `m${id}`, settled_by: "answer" } },
    ];
  };
  const readInbox = async (world: OutreachHarness) => {
    world.time.jump(11 * MINUTE_MS);
    const instance = await world.start();
    await instance.run();
    return instance;
  };
  const contactOf = ({ projector }: Awaited<ReturnType<typeof readInbox>>, id: string) =>
    findContact(projector.state("contacts"), { id });

  test("revokes only tracking, and erases the clicks on personal links in the same append", async () => {
    await using world = await openOutreach("10");
    await world.append([granted("10"), ...linked("10", "c1", "c2")]);
    world.time.jump(MINUTE_MS);
    const at = world.time.now();
    const message_id = world.network.receive("10", "Please STOP  tracking me!");
    world.network.receive("10", "stop tracking");
    const instance = await readInbox(world);
    const [denied, ...more] = await world.events("ConsentRecorded");
    expect(more).toEqual([]);
    expect(denied?.data).toEqual({
      recipient: { id: "10", username: "user_10" },
      tracking: "denied",
      tracking_at: new Date(at).toISOString(),
      tracking_source: "message",
      message_id,
    });
    const [erased, ...others] = await world.events("PersonForgotten");
    expect(others).toEqual([]);
    expect(erased?.data).toEqual({ hashes: [], keys: ["key of c1", "key of c2"], scope: "tracking" });
    expect(erased?.position).toBe((denied?.position ?? 0) + 1);
    expect(await world.events("RecipientSuppressed")).toEqual([]);
    expect(contactOf(instance, "10")).toMatchObject({
      suppressed: false,
      replied: true,
      tracking: { status: "denied" },
    });
    // The log contains the decision but not the recipient's words. A second run does not read the message again, so the
    // log still has one decision.
    expect(JSON.stringify(await Array.fromAsync(world.store.read()))).not.toContain("tracking me");
    world.time.jump(MINUTE_MS);
    await instance.run();
    expect(await world.events("ConsentRecorded")).toHaveLength(1);
  });

  test("is recorded for a recipient who never granted tracking, without an erasure", async () => {
    await using world = await openOutreach("10");
    await world.append(linked("10"));
    world.network.receive("10", "stop tracking");
    await readInbox(world);
    expect(await world.events("ConsentRecorded")).toMatchObject([{ data: { tracking: "denied" } }]);
    expect(await world.events("PersonForgotten")).toEqual([]);
  });

  test.each(["stop tracking and stop writing", "stop\ntracking", "STOP. Tracking is bad"])(
    "is held for an operator if it may also be an opt-out: %j",
    async (text) => {
      await using world = await openOutreach("10");
      await world.append([granted("10"), ...linked("10", "c1")]);
      world.network.receive("10", text);
      const instance = await readInbox(world);
      expect(contactOf(instance, "10")).toMatchObject({ held: true, suppressed: false });
    },
  );

  test("revokes nothing if it is older than a dated grant", async () => {
    await using world = await openOutreach("10", "11");
    await world.append([...linked("10", "c1"), ...linked("11", "c2")]);
    world.network.receive("10", "stop tracking");
    world.network.receive("11", "stop tracking");
    world.time.jump(MINUTE_MS);
    const later = { tracking: "granted", tracking_at: new Date(world.time.now()).toISOString() } as const;
    await world.append([
      { type: "ConsentRecorded", data: { recipient: { id: "10" }, ...later } },
      { type: "ConsentRecorded", data: { recipient: { id: "11" }, tracking: "granted" } },
    ]);
    const instance = await readInbox(world);
    expect(contactOf(instance, "10")?.tracking.status).toBe("granted");
    // The grant to recipient 11 has no date, so it does not count as later than the message that revokes it.
    expect(contactOf(instance, "11")?.tracking.status).toBe("denied");
  });
});
