// On no harness.
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { createAuthentication } from "../../../src/http/access/bearer-tokens.ts";
import { followTokensFile } from "../../../src/http/access/tokens-file.ts";

const OLD = "old-token-0123456789";
const NEW = "new-token-0123456789";
const OTHER = "other-token-0123456789";

const of = (name: string, token: string) => ({ name, sha256: createHash("sha256").update(token).digest("hex") });
const line = (name: string, token: string) => `${name}:sha256:${of(name, token).sha256}\n`;

/** Follows a tokens file with simulated contents, and a clock that advances with each read. */
function follow(first: string) {
  const tokens = [of("ops", OTHER), of("web", OLD)];
  const authentication = createAuthentication({ tokens, authPolicy: "strict", openRoutes: [] }, Date.now);
  const logged: string[] = [];
  const at = (...said: unknown[]): void => void logged.push(JSON.stringify(said));
  const world = { content: first as string | undefined };
  let turn = Promise.withResolvers<void>();
  let asleep = Promise.withResolvers<void>();
  const following = followTokensFile({
    path: "tokens",
    fixed: [of("ops", OTHER)],
    tokens,
    authentication,
    logger: { debug: at, info: at, warn: at, error: at },
    async read() {
      if (world.content === undefined) throw new Error("ENOENT");
      return world.content;
    },
    async sleep(_ms, signal) {
      asleep.resolve();
      signal.addEventListener("abort", () => turn.resolve());
      await turn.promise;
      turn = Promise.withResolvers();
    },
  });
  return {
    logged,
    /** Changes the file and waits for this number of reads. */
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

test("a token is exchanged without a moment in which the caller has none", async () => {
  await using file = follow(line("web", OLD));
  await file.becomes(line("web", OLD) + line("web", NEW));
  expect(file.callers()).toEqual(["ops", "web", "web"]);
  await file.becomes(`# the new one\r\n\r\n  ${line("web", NEW)}`);
  expect(file.callers()).toEqual(["ops", undefined, "web"]);
  expect(file.logged).toHaveLength(2);
  for (const secret of [OLD, NEW, of("web", NEW).sha256]) expect(file.logged.join()).not.toContain(secret);
});

test("a file that is being written is waited for", async () => {
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
  ["is gone", undefined, "it cannot be read"],
  ["is empty", "", "holds no token"],
  ["holds comments only", "# nothing\n", "holds no token"],
  ["was cut off", line("web", NEW).slice(0, 40), "line 1: the SHA-256 is not 64 hex digits"],
  [
    "has one bad line among good ones",
    `${line("web", NEW)}web:short\n`,
    "line 2: the token has fewer than 16 characters",
  ],
  ["gives another's token a name", line("web", OTHER), "line 1 is the token of an earlier name"],
])("a file that %s changes nothing, and is logged once", async (_what, content, problem) => {
  await using file = follow(line("web", OLD));
  await file.becomes(line("web", OLD), 3);
  await file.becomes(content, 5);
  expect(file.callers()).toEqual(["ops", "web", undefined]);
  expect(file.logged).toEqual([expect.stringContaining(problem)]);
  await file.becomes(line("web", NEW));
  expect(file.callers()).toEqual(["ops", undefined, "web"]);
});

test("a plain token in the file is as good as its hash", async () => {
  await using file = follow(line("web", OLD));
  await file.becomes(`web:${NEW}\n`);
  expect(file.callers()).toEqual(["ops", undefined, "web"]);
  expect(file.logged.join()).not.toContain(NEW);
});
