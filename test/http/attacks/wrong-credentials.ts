import { TOKEN } from "../../harness/process.ts";
import { JSON_TYPE } from "../wire/raw-request-bytes.ts";
import { tally, type Attack } from "./attack.ts";
import { goodBody, PATHS, POSTS } from "./routes.ts";
import { slugOf } from "./target.ts";

const swapped = (at: number): string => TOKEN.slice(0, at) + (TOKEN[at] === "x" ? "y" : "x") + TOKEN.slice(at + 1);

/** Header lines that must not admit a request: the token is missing, wrong, or in the wrong place. */
const NO_CREDENTIALS: readonly (readonly string[])[] = [
  [],
  ["Authorization:"],
  ["Authorization: Bearer"],
  ["Authorization: Bearer "],
  ["Authorization: Bearer null"],
  ["Authorization: Bearer undefined"],
  [`Authorization: ${TOKEN}`],
  [`Authorization: Basic ${btoa(`tester:${TOKEN}`)}`],
  [`Authorization: Basic ${btoa(`${TOKEN}:`)}`],
  [`Authorization: Token ${TOKEN}`],
  [`Authorization: Bearer:${TOKEN}`],
  [`Authorization: Bearer=${TOKEN}`],
  [`Authorization: Bearer "${TOKEN}"`],
  [`Authorization: Bearer tester:${TOKEN}`],
  [`Authorization: Bearer ${swapped(0)}`],
  [`Authorization: Bearer ${swapped(TOKEN.length - 1)}`],
  [`Authorization: Bearer ${TOKEN.slice(1)}`],
  [`Authorization: Bearer ${TOKEN.slice(0, -1)}`],
  [`Authorization: Bearer ${TOKEN}x`],
  [`Authorization: Bearer ${TOKEN.toUpperCase()}`],
  [`Authorization: Bearer ${"a".repeat(10_000)}`],
  [`Authorization: Bearer ${TOKEN}, Bearer ${TOKEN}`],
  [`Authorization: Bearer ${TOKEN}`, "Authorization: Bearer wrong"],
  ["Authorization: Bearer wrong", `Authorization: Bearer ${TOKEN}`],
  [`Authorization: Bearer ${TOKEN}`, `Authorization: Bearer ${TOKEN}`],
  [`Authorization: Bearer ${TOKEN}`, "Authorization: Basic eDp5"],
  [`Authorization: Bearer ${TOKEN}\u00e4`],
  [`Proxy-Authorization: Bearer ${TOKEN}`],
  [`X-Authorization: Bearer ${TOKEN}`],
  [`X-API-Key: ${TOKEN}`],
  [`Cookie: access_token=${TOKEN}; reachlog_session=${TOKEN}; authorization=Bearer ${TOKEN}`],
  ["X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1", "X-Original-URL: /api/health", "X-Rewrite-URL: /api/health"],
  ["X-Forwarded-User: tester", "X-Remote-User: tester"],
];

/** Number of failed authentications of one address in a minute, after which the service answers 429. */
const FAILURES_MAX = 10;

/** Expected `WWW-Authenticate` header. By RFC 6750, the header names an error only if the request had a token. */
const CHALLENGE = /^Bearer realm="reachlog"(?:, error="invalid_token")?$/;

export const callers: readonly Attack[] = [
  {
    name: "every guarded path refuses a request without the right token in its place",
    expected: "401, accepted 0",
    async run(target) {
      await target.recorded();
      const wrong: string[] = [];
      const statuses: number[] = [];
      const guarded = PATHS.filter(({ protection }) => protection === "strict" || protection === "token");
      for (const { path, method } of guarded) {
        for (const headers of NO_CREDENTIALS) {
          // The address of each request contains the token, which must not count there.
          const sent = {
            method,
            path: `${path}?access_token=${TOKEN}&token=${TOKEN}&=${TOKEN}`,
            headers: [JSON_TYPE, ...headers],
          };
          const body = method === "POST" ? { body: goodBody(path as (typeof POSTS)[number]) } : {};
          const heard = await target.ask({ ...sent, ...body }, target.stranger());
          statuses.push(heard.status);
          const challenge = heard.answers[0]?.headers.get("www-authenticate")?.[0];
          if (slugOf(heard) !== "unauthorized" || !CHALLENGE.test(challenge ?? ""))
            wrong.push(`${path} ${headers.join()}: ${heard.status}`);
        }
      }
      const right = await target.ask({ path: "/social/stats", headers: [`authorization: bEARER ${TOKEN}`] });
      if (right.status !== 200) wrong.push(`the right one is answered ${right.status}`);
      const recorded = (await target.recorded()).length;
      if (recorded > 0) wrong.push(`recorded ${recorded}`);
      return { tried: statuses.length, seen: `${tally(statuses)}, recorded ${recorded}`, wrong };
    },
  },
  {
    name: "guesses of tokens are limited per address",
    expected: `${FAILURES_MAX} × 401, then 429 with Retry-After; the right one passes, here and elsewhere`,
    async run(target) {
      const guesser = target.stranger();
      const guess = (token: string, from: string) =>
        target.ask({ path: "/social/stats", headers: [`Authorization: Bearer ${token}`] }, from);
      const statuses: number[] = [];
      const wrong: string[] = [];
      for (let nth = 1; nth <= 3 * FAILURES_MAX; nth++) {
        const { status, answers } = await guess(`guess-${nth}`, guesser);
        statuses.push(status);
        const isBlocked = status === 429 && Number(answers[0]?.headers.get("retry-after")?.[0]) > 0;
        if (nth <= FAILURES_MAX ? status !== 401 : !isBlocked) wrong.push(`the ${nth}th: ${status}`);
      }
      if ((await guess(TOKEN, guesser)).status !== 200) wrong.push("the right token is locked out with the guesses");
      if ((await guess(TOKEN, target.stranger())).status !== 200) wrong.push("another address is concerned");
      return { tried: statuses.length + 2, seen: tally(statuses), wrong };
    },
  },
  {
    name: "a repeated request with one key is recorded once",
    expected: "recorded 1, another body 422, no key 400",
    async run(target) {
      await target.recorded();
      const path = "/api/tracking/event";
      const send = (key: string, body = goodBody(path)) =>
        target.ask({
          method: "POST",
          path,
          headers: [JSON_TYPE, `Authorization: Bearer ${TOKEN}`, `Idempotency-Key: ${key}`],
          body,
        });
      const wrong: string[] = [];
      const heard = await Promise.all(Array.from({ length: 40 }, () => send("replayed")));
      for (let nth = 0; nth < 20; nth++) heard.push(await send('"replayed"'));
      const answers = new Set(heard.map(({ answers: [answer] }) => `${answer?.status} ${answer?.body}`));
      if (answers.size !== 1) wrong.push(...answers);
      const recorded = (await target.recorded()).length;
      if (recorded !== 1) wrong.push(`recorded ${recorded}`);
      const other = await send("replayed", goodBody(path).replace("spring", "summer"));
      if (slugOf(other) !== "idempotency-key-reused") wrong.push(`another body: ${other.status}`);
      const bad = ["", '"', '""', "a b", "\u00e4", "x".repeat(256), 'a"b', "a\tb"];
      for (const key of bad) {
        const { status } = await send(key);
        if (status !== 400) wrong.push(`${JSON.stringify(key)}: ${status}`);
      }
      return {
        tried: heard.length + 1 + bad.length,
        seen: `recorded ${recorded}, different answers ${answers.size}`,
        wrong,
      };
    },
  },
];
