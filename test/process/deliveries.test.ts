// On the process harness.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { CLICK } from "../harness/click.ts";
import { exported, openInstallation, stop, until, type Installation, type Running } from "../harness/process.ts";

const count = async (world: Installation, type: string): Promise<number> =>
  (await exported(world)).filter((event) => event.type === type).length;

interface Listed {
  readonly channels: readonly { readonly channel: string; readonly dead: number; readonly suspended: object | null }[];
  readonly dispatches: readonly { readonly event_id: string; readonly channel: string }[];
}

describe("an operator beside a running service", () => {
  let world: Installation;
  let service: Running;
  beforeAll(async () => {
    world = await openInstallation();
    service = await world.serve();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const command = (...args: string[]) => world.command("deliveries", ...args);
  const list = async (): Promise<Listed> => JSON.parse((await command("list", "--json")).out) as Listed;
  const chatOf = ({ channels }: Listed) => channels.find(({ channel }) => channel === "chat");

  /** Slack refuses the channel once, which makes a dead letter and suspends the channel. */
  async function refuse(message: string): Promise<string> {
    world.sandbox.faults.add({ network: "slack", kind: "channel_archived", count: 1 });
    expect((await service.post("/api/notify", { message })).status).toBe(502);
    const listed = await until(list, (now) => chatOf(now)?.suspended !== null && now.dispatches.length > 0);
    return listed.dispatches.at(-1)?.event_id ?? "";
  }

  test("a channel that is refused: what is pending waits, and the letter is decided of once", async () => {
    const id = await refuse("broken");
    expect(chatOf(await list())).toMatchObject({ dead: 1, suspended: { network: "slack" } });
    expect((await command("list")).out).toMatch(
      /\nchat is suspended since \S+Z: slack refuses .* channel_is_archived\n/,
    );
    const shown = await command("show", id);
    expect(shown.code).toBe(0);
    expect(shown.out).toMatch(
      /^\d+ \S+Z a notification of level info was requested for .*"broken"; queued for chat\n\n/,
    );
    expect(shown.out).toContain(`\nchat: a dead letter: send it with reachlog deliveries retry ${id}, or`);

    const discards = await Promise.all(
      ["one", "other"].map((who) => command("discard", id, "--why", `the campaign is over, says ${who}`)),
    );
    expect(discards.reduce((sum, { code }) => sum + code, 0)).toBe(1);
    expect(await count(world, "DispatchDiscarded")).toBe(1);
    const refused = { code: 1, out: "0 retried\n", err: `${id} is no dead letter\n` };
    expect(await command("retry", id)).toEqual(refused);
    expect(await count(world, "DispatchRetryRequested")).toBe(0);
    expect(await list()).toMatchObject({ dispatches: [] });
    expect(chatOf(await list())).toMatchObject({ dead: 0 });
    expect((await command("show", id)).out).toMatch(/an operator discarded .*: "the campaign is over, says \w+"\n$/);
  });

  test("a click waits until the channel is resumed by hand, and then goes at once", async () => {
    const posted = world.sandbox.slack.messages.total;
    const clicked = await service.post("/api/tracking/event", CLICK);
    const { id } = (await clicked.json()) as { id: string };
    await until(
      () => command("show", id, "--channel", "ads"),
      ({ out }) => out.includes("\nads: delivered\n"),
    );
    expect((await command("show", id)).out).toMatch(
      /\nchat: waits: the channel is suspended since \S+Z, ".*archived"\n/,
    );
    expect((await command("lag")).out).toMatch(/\nchat {7}1 .* not while suspended +suspended since \S+Z\n/);
    expect(world.sandbox.slack.messages.total).toBe(posted);

    expect(await command("resume", "chat")).toMatchObject({ code: 0, err: "" });
    await until(
      () => command("show", id, "--channel", "chat"),
      ({ out }) => out.includes("\nchat: delivered\n"),
    );
    expect(world.sandbox.slack.messages.total).toBe(posted + 1);
    expect(chatOf(await list())).toMatchObject({ suspended: null });
    expect(await command("resume", "chat")).toMatchObject({ code: 1, err: "chat is not suspended\n" });
  });

  test("one retries and another discards at the same moment: one of the two stands", async () => {
    const id = await refuse("contested");
    expect((await command("resume", "chat")).code).toBe(0);
    const before = await count(world, "DispatchDiscarded");
    const answers = await Promise.all([command("retry", id), command("discard", id, "--why", "over")]);
    expect(answers.reduce((sum, { code }) => sum + code, 0)).toBe(1);
    const retried = await count(world, "DispatchRetryRequested");
    const discarded = (await count(world, "DispatchDiscarded")) - before;
    expect(retried + discarded).toBe(1);
    await until(
      () => command("show", id),
      ({ out }) => out.includes(retried === 1 ? "\nchat: delivered\n" : "\nchat: discarded"),
    );
  });

  test("a dispatch in doubt is sent again by hand, arrives twice, and is not sent a third time", async () => {
    const before = world.sandbox.slack.messages.total;
    world.sandbox.faults.add({ network: "slack", kind: "reset_after_delivery", count: 1 });
    expect((await service.post("/api/notify", { message: "perhaps" })).status).toBe(504);
    const inDoubt = async () => JSON.parse((await command("list", "--status", "in_doubt", "--json")).out) as Listed;
    const { dispatches } = await until(inDoubt, (now) => now.dispatches.length === 1);
    const id = dispatches[0]?.event_id ?? "";
    const retry = () => command("retry", id, "--in-doubt", "--accept-doubles");
    expect(await command("retry", id, "--in-doubt")).toMatchObject({ code: 1, out: "0 retried\n" });
    expect(await retry()).toEqual({ code: 0, out: "1 retried\n", err: "" });
    await until(
      () => command("show", id),
      ({ out }) => out.includes("\nchat: delivered\n"),
    );
    expect(world.sandbox.slack.messages.total).toBe(before + 2);
    expect(await retry()).toEqual({ code: 1, out: "0 retried\n", err: `${id} is not in doubt\n` });
    expect(await inDoubt()).toMatchObject({ count: 0, dispatches: [] });
    expect(world.sandbox.slack.messages.total).toBe(before + 2);
  });

  test("lag --watch ends when it is interrupted, with the code of the signal", async () => {
    const watching = world.start(["deliveries", "lag", "--watch", "--json"]);
    const reader = watching.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const { value = "" } = await reader.read();
    expect(JSON.parse(value)).toMatchObject({ channels: [{ channel: "ads" }, { channel: "chat" }, {}, {}] });
    watching.kill("SIGINT");
    expect(await watching.exited).toBe(130);
    expect(await stop(service)).toBe(0);
  });
});
