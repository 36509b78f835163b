// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { recipientAmong } from "../../src/recipients/resolve-recipient.ts";
import { settleMessagesInDoubt, type SettleMessages } from "../../src/outreach/operator-settles-messages-in-doubt.ts";
import { SocialError } from "../../src/networks/network.ts";
import { LOG_ENGINES } from "../harness/in-process/temporary-log.ts";
import { openOutreachOn } from "../harness/in-process/simulated-outreach-processes.ts";

const MARA = { caller: "mara" };

describe.each(LOG_ENGINES)("messages in doubt, %s", (engine) => {
  /** Opens a world in which the messages to 10 and 11 are in doubt, because X shows no conversation. */
  async function openInDoubt() {
    const world = await openOutreachOn(engine, "10", "11");
    world.network.answers.push({ doubt: "delivered" }, { doubt: "lost" });
    const { conversation } = world.network;
    world.network.conversation = () => Promise.reject(new SocialError("unavailable", "no answer of @user_10"));
    const { run, runner, context, projector } = await world.start();
    expect(await run()).toMatchObject({ sent: 0, in_doubt: 2 });
    const settle = (asked: Partial<SettleMessages>) =>
      settleMessagesInDoubt(
        context,
        { recipients: undefined, expected: undefined, as: "left", why: "too old", ...asked },
        MARA,
      );
    const named = (name: string) => [recipientAmong(projector.state("contacts"), name)];
    const showAgain = () => (world.network.conversation = conversation);
    return { world, run, runner, context, projector, settle, named, showAgain };
  }

  test("a message that arrived counts as sent, in the operator's name and with the reason", async () => {
    const { world, run, projector, settle, named } = await openInDoubt();
    await using _ = world;
    expect(await settle({ recipients: named("@user_10"), as: "arrived", why: "she answered" })).toEqual({ done: 1 });
    expect(await world.events("DirectMessageSent")).toMatchObject([
      { data: { recipient: { id: "10" }, settled_by: "operator", why: "she answered" }, meta: MARA },
    ]);
    expect(projector.state("stats").sent).toBe(1);
    expect([...projector.state("run").open.values()].map(({ recipient }) => recipient.id)).toEqual(["11"]);
    await run();
    expect(world.network.asked).toEqual(["10", "11"]);
  });

  test("a message left as unknown is never looked up or sent again, and keeps its place in the quota", async () => {
    const { world, run, projector, settle, showAgain } = await openInDoubt();
    await using _ = world;
    expect(await settle({ expected: 2 })).toEqual({ done: 2 });
    expect(await world.events("DirectMessageLeft")).toMatchObject([
      { data: { recipient: { id: "10" }, why: "too old" }, meta: MARA },
      { data: { recipient: { id: "11" } }, meta: MARA },
    ]);
    showAgain();
    await run();
    expect(await world.events("DirectMessageSent")).toEqual([]);
    expect(world.network.asked).toEqual(["10", "11"]);
    expect(projector.state("quota").days.get("2026-03-01")).toBe(2);
    expect(projector.state("contacts").people.size).toBe(2);
    expect([...projector.state("contacts").people.values()].map(({ status }) => status)).toEqual([
      "in_doubt",
      "in_doubt",
    ]);
  });

  test("nothing is decided for a recipient without a message in doubt, or if the number of these messages has changed", async () => {
    const { world, settle, named } = await openInDoubt();
    await using _ = world;
    expect(await settle({ recipients: named("@user_12") })).toEqual({ missing: { username: "user_12" } });
    expect(await settle({ expected: 1 })).toEqual({ number: 2 });
    expect(await world.events("DirectMessageLeft")).toEqual([]);
    await settle({});
    expect(await settle({ recipients: named("@user_10") })).toEqual({ missing: { username: "user_10" } });
  });

  test("a lookup settles the messages that X shows, in the caller's name", async () => {
    const { world, runner, showAgain } = await openInDoubt();
    await using _ = world;
    showAgain();
    expect(await runner.lookUp(MARA)).toEqual({ in_doubt: 2 });
    expect(runner.lookup()).toMatchObject(MARA);
    expect(await runner.lookUp(MARA)).toBe("running");
    await runner[Symbol.asyncDispose]();
  });

  test("a lookup's result is recorded, with the reason why a message stays in doubt", async () => {
    const { world, runner, showAgain } = await openInDoubt();
    await using _ = world;
    const ended = Promise.withResolvers<void>();
    const { projector } = await world.start();
    projector.listen(({ type }) => {
      if (type === "MessagesLookedUp") ended.resolve();
    });
    showAgain();
    const { conversation } = world.network;
    world.network.conversation = (token, id, limit) =>
      id === "11"
        ? Promise.reject(new SocialError("unavailable", "no answer of @user_11"))
        : conversation(token, id, limit);
    await runner.lookUp(MARA);
    await ended.promise;
    expect(await world.events("MessagesLookedUp")).toMatchObject([
      {
        data: { in_doubt: 2, sent: 1, not_delivered: 0, detail: "X did not show the conversation" },
        meta: MARA,
      },
    ]);
    expect(await world.events("DirectMessageSent")).toMatchObject([
      { data: { recipient: { id: "10" }, settled_by: "lookup" }, meta: MARA },
    ]);
  });
});
