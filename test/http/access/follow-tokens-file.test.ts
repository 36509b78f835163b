// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { createAuthentication } from "../../../src/http/access/bearer-tokens.ts";
import { followTokensFile } from "../../../src/http/access/follow-tokens-file.ts";
import { toLogContext } from "../../harness/in-process/temporary-log.ts";
import type { EventLog } from "../../../src/log/event-log.ts";

const OLD = "old-token-0123456789";
const NEW = "new-token-0123456789";
const OTHER = "other-token-0123456789";

const of = (name: string, token: string) => ({ name, sha256: createHash("sha256").update(token).digest("hex") });
const line = (name: string, token: string) => `${name}:sha256:${of(name, token).sha256}\n`;

/**
 * Follows a simulated tokens file with the content `first`. The test decides when the wait between two reads of the
 * file ends.
 */
function follow(first: string) {
  const tokens = [of("ops", OTHER), of("web", OLD)];
  const authentication = createAuthentication({ tokens, authPolicy: "strict", openRoutes: [] }, Date.now);
  const logged: string[] = [];
  const at = (...said: unknown[]): void => void logged.push(JSON.stringify(said));
  const world = { content: first as string | undefined };
  let turn = Promise.withResolvers<void>();
  let asleep = Promise.withResolvers<void>();
  const file = {
    path: "tokens",
    fixed: [of("ops", OTHER)],
    tokens,
    authentication,
    async read() {
      if (world.content === undefined) throw new Error("ENOENT");
      return world.content;
    },
  };
  const context = toLogContext({} as EventLog, {
    logger: { debug: at, info: at, warn: at, error: at },
    async sleep(_ms, signal) {
      asleep.resolve();
      signal.addEventListener("abort", () => turn.resolve());
      await turn.promise;
      turn = Promise.withResolvers();
    },
  });
  const following = followTokensFile(context, file);
  return {
    logged,
    /** Changes the file's content and waits until the file was read `readings` times. */
    async becomes(content: string | undefined, readings = 2): Promise<void> {
      world.content = content;
      for (let reading = 0; reading < readings; reading++) {
        await asleep.promise;
        asleep = Promise.withResolvers();
        turn.resolve();
      }
      await asleep.promise;
    },
    callers: () => [OTHER, OLD, NEW].map((token) => authentication.identify(token)?.name),
    [Symbol.asyncDispose]: following[Symbol.asyncDispose],
  };
}

test("a caller can replace its token without an interruption", async () => {
  await using file = follow(line("web", OLD));
  await file.becomes(line("web", OLD) + line("web", NEW));
  expect(file.callers()).toEqual(["ops", "web", "web"]);
  await file.becomes(`# the new one\r\n\r\n  ${line("web", NEW)}`);
  expect(file.callers()).toEqual(["ops", undefined, "web"]);
  expect(file.logged).toHaveLength(2);
  for (const secret of [OLD, NEW, of("web", NEW).sha256]) expect(file.logged.join()).not.toContain(secret);
});

test("a changed file is applied only once two reads agree", async () => {
  await using file = follow(line("web", OLD));
  const whole = line("web", OLD) + line("web", NEW);
  await file.becomes(line("web", OLD), 2);
  await file.becomes(line("else", NEW), 1);
  await file.becomes(whole, 1);
  expect(file.callers()).toEqual(["ops", "web", undefined]);
  await file.becomes(whole, 1);
  expect(file.callers()).toEqual(["ops", "web", "web"]);
});

test.each([
  ["is missing", undefined, "it cannot be read"],
  ["is empty", "", "holds no token"],
  ["holds comments only", "# nothing\n", "holds no token"],
  ["was cut off", line("web", NEW).slice(0, 40), "line 1: the SHA-256 is not 64 hex digits"],
  [
    "has one bad line among good ones",
    `${line("web", NEW)}web:short\n`,
    "line 2: the token has fewer than 16 characters",
  ],
  ["repeats another caller's token", line("web", OTHER), "line 1 repeats the token of another name"],
])("a file that %s changes nothing, and is logged once", async (_what, content, problem) => {
  await using file = follow(line("web", OLD));
  await file.becomes(line("web", OLD), 3);
  await file.becomes(content, 5);
  expect(file.callers()).toEqual(["ops", "web", undefined]);
  expect(file.logged).toEqual([expect.stringContaining(problem)]);
  await file.becomes(line("web", NEW));
  expect(file.callers()).toEqual(["ops", undefined, "web"]);
});

test("a plain token in the file is accepted like its hash, and not logged", async () => {
  await using file = follow(line("web", OLD));
  await file.becomes(`web:${NEW}\n`);
  expect(file.callers()).toEqual(["ops", undefined, "web"]);
  expect(file.logged.join()).not.toContain(NEW);
});
