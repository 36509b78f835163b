// These tests start the service or commands as processes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { CLICK } from "../harness/sample-click.ts";
import {
  exported,
  openInstallation,
  stop,
  until,
  type Installation,
  type ListeningService,
} from "../harness/process.ts";

const count = async (world: Installation, type: string): Promise<number> =>
  (await exported(world)).filter((event) => event.type === type).length;

interface Channels {
  readonly channels: readonly { readonly channel: string; readonly dead: number; readonly suspended: object | null }[];
}

describe("an operator of a running service", () => {
  let world: Installation;
  let service: ListeningService;
  beforeAll(async () => {
    world = await openInstallation();
    service = await world.host();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const command = (...args: string[]) => world.command("deliveries", ...args);
  const list = async (...args: string[]) => {
    const lines = (await command("list", "--json", ...args)).out.split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as { readonly event_id: string });
  };
  const chat = async () => {
    const { channels } = JSON.parse((await command("channels", "--json")).out) as Channels;
    return channels.find(({ channel }) => channel === "chat");
  };

  /** Makes Slack refuse one message, which creates a dead letter and suspends the channel. */
  async function refuse(message: string): Promise<string> {
    world.sandbox.faults.add({ network: "slack", kind: "channel_archived", count: 1 });
    expect((await service.post("/api/notify", { message })).status).toBe(502);
    await until(chat, (now) => now?.suspended !== null && now?.dead !== 0);
    return (await list())[0]?.event_id ?? "";
  }

  test("discards a dead letter of a suspended channel once", async () => {
    const id = await refuse("broken");
    expect(await chat()).toMatchObject({ dead: 1, suspended: { network: "slack" } });
    expect((await command("channels")).out).toMatch(
      /\nchat .* suspended since \S+Z: slack refuses .* channel_is_archived\n/,
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
    const out = `0 dispatches were retried. 1 was skipped: ${id} is no dead letter.\n`;
    expect(await command("retry", id)).toEqual({ code: 1, out, err: "" });
    expect(await count(world, "DispatchRetryRequested")).toBe(0);
    expect(await list()).toEqual([]);
    expect(await chat()).toMatchObject({ dead: 0 });
    expect((await command("show", id)).out).toMatch(/an operator discarded .*: "the campaign is over, says \w+"\n$/);
  });

  test("resumes a suspended channel, and the waiting click is delivered", async () => {
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
    expect(await chat()).toMatchObject({ suspended: null });
    expect(await command("resume", "chat")).toMatchObject({ code: 1, err: "The chat channel is not suspended.\n" });
  });

  test("retries or discards a letter, never both, if both commands run at once", async () => {
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

  test("retries a dispatch in doubt once, so that it arrives twice", async () => {
    const before = world.sandbox.slack.messages.total;
    world.sandbox.faults.add({ network: "slack", kind: "reset_after_delivery", count: 1 });
    expect((await service.post("/api/notify", { message: "perhaps" })).status).toBe(504);
    const inDoubt = () => list("--status", "in_doubt");
    const [{ event_id: id } = { event_id: "" }] = await until(inDoubt, (now) => now.length === 1);
    const retry = () => command("retry", id, "--status", "in_doubt", "--accept-doubles");
    expect((await command("retry", id, "--status", "in_doubt")).code).toBe(2);
    expect(await retry()).toEqual({ code: 0, out: "1 dispatch was retried.\n", err: "" });
    await until(
      () => command("show", id),
      ({ out }) => out.includes("\nchat: delivered\n"),
    );
    expect(world.sandbox.slack.messages.total).toBe(before + 2);
    const none = `0 dispatches were retried. 1 was skipped: ${id} is not in doubt.\n`;
    expect(await retry()).toEqual({ code: 1, out: none, err: "" });
    expect(await inDoubt()).toEqual([]);
    expect(world.sandbox.slack.messages.total).toBe(before + 2);
  });

  test("interrupts lag --watch, which exits with the code of the signal", async () => {
    const watching = world.start(["deliveries", "lag", "--watch", "--json"]);
    const reader = watching.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const { value = "" } = await reader.read();
    expect(JSON.parse(value)).toMatchObject({ channels: [{ channel: "ads" }, { channel: "chat" }, {}, {}] });
    watching.kill("SIGINT");
    expect(await watching.exited).toBe(130);
    expect(await stop(service)).toBe(0);
  });
});
