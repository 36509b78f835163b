import { TOKEN } from "../../harness/process.ts";
import { JSON_TYPE } from "../wire/raw-request-bytes.ts";
import { tally, type Attack } from "./attack.ts";
import { goodBody, POSTS } from "./routes.ts";
import { slugOf, type Target } from "./target.ts";

const WITH_TOKEN = `Authorization: Bearer ${TOKEN}`;

const TYPES = [
  "text/plain",
  "text/json",
  "text/plain; application/json",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=a",
  "application/xml",
  "application/vnd.x+json",
  "application/problem+json",
  "application/jsonp",
  "application/json; charset=utf-16",
  "application/json; charset=utf-7",
  "application/json; boundary=a",
  "application/json, text/plain",
  "*/*",
  "json",
  "",
];

const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
const inObjects = (depth: number): string => '{"a":'.repeat(depth) + "1" + "}".repeat(depth);

/** Malformed bodies, each with a name. Every endpoint refuses them. */
const MALFORMED: readonly (readonly [string, string | Uint8Array])[] = [
  ["a tower of 32,000 brackets", nested(32_000)],
  ["a tower in a field", `{"text":${nested(30_000)}}`],
  ["17 levels", inObjects(17)],
  ["a tower without its roof", "[".repeat(60_000)],
  ["a member twice", '{"text":"a","text":"b"}'],
  ["a member twice, once in escapes", '{"dry_run":true,"dry\\u005frun":false}'],
  ["a prototype twice", '{"__proto__":{"a":1},"__proto__":{"a":1}}'],
  ["a NUL", '{"text":"a\\u0000b","message":"a\\u0000b"}'],
  ["half of a pair", '{"text":"\\ud800","message":"\\ud800"}'],
  ["half of a pair as a name", '{"\\udfff":"a"}'],
  ["a bare control character", '{"text":"a\u0001"}'],
  ["a bare line break", '{"text":"a\nb"}'],
  ["comments", '{/*a*/"text":"b"}'],
  ["NaN", '{"text":NaN}'],
  ["a number that is none", '{"text":01}'],
  ["two values", "{}{}"],
  ["JSON of another encoding", Buffer.from('{"text":"a"}', "utf16le")],
  ...[[0x80], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82], [0xff, 0xfe]].map(
    (bytes) =>
      [
        `the bytes ${Buffer.from(bytes).toString("hex")}`,
        Buffer.concat([Buffer.from('{"text":"'), Buffer.from(bytes), Buffer.from('"}')]),
      ] as const,
  ),
];

/** Bodies of valid JSON that no endpoint accepts, each with a name. */
const UNFIT: readonly (readonly [string, string])[] = [
  ["a prototype", '{"__proto__":{"message":"a","text":"a","dry_run":true}}'],
  ["a constructor", '{"constructor":{"prototype":{"message":"a","text":"a"}}}'],
  ["names of methods", '{"toString":1,"valueOf":2,"hasOwnProperty":3,"toJSON":4,"then":5}'],
  ["methods in a field", '{"text":{"toString":null},"message":{"toJSON":1}}'],
  ["huge numbers", '{"text":1e400,"message":-1e400,"dry_run":9007199254740993}'],
  ["a number of 60,000 digits", `{"text":${"9".repeat(60_000)}}`],
  ["60,000 digits behind the point", `{"text":0.${"0".repeat(60_000)}1}`],
  ["10,000 members", `{${Array.from({ length: 5_000 }, (_, at) => `"${at}":${at}`).join()}}`],
  ["a name of 60,000 letters", `{"${"a".repeat(60_000)}":1}`],
  ["60,000 backslashes", `{"${"\\\\".repeat(30_000)}":1}`],
  ["an array", "[]"],
  ["a text", '"text"'],
  ["null", "null"],
  ["true", "true"],
];

/** Texts that the log must return unchanged. */
const TEXTS = [
  "größer 日本 👋🏽 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
  "\u202Eright to left\u202C \u2066isolated\u2069 \u200F",
  "\u001b[31mred\u001b[0m\u0007\u0085\u009b",
  "\u2028\u2029\uFEFF\uFFFD\uFFFF\u{10FFFF}",
  "e\u0301 é \u00A0 \u200B",
  'quotes " \\ / </script> ${a} {{name}} %s',
];

async function post(target: Target, path: string, body: string | Uint8Array, type = JSON_TYPE) {
  return target.ask({ method: "POST", path, headers: [type, WITH_TOKEN], body });
}

/**
 * Posts each body to each path. Checks that every answer is the problem `slug`, and that the log records no request.
 */
async function refuse(target: Target, cases: readonly (readonly [string, string | Uint8Array])[], slug: string) {
  await target.recorded();
  const wrong: string[] = [];
  const statuses: number[] = [];
  let slowestMs = 0;
  for (const [what, body] of cases) {
    for (const path of POSTS) {
      const startedAt = performance.now();
      const heard = await post(target, path, body);
      slowestMs = Math.max(slowestMs, performance.now() - startedAt);
      statuses.push(heard.status);
      if (slugOf(heard) !== slug) wrong.push(`${path}, ${what}: ${heard.status}`);
    }
  }
  const recorded = (await target.recorded()).length;
  if (recorded > 0) wrong.push(`recorded ${recorded}`);
  // The result names the slowest answer. A refusal should take a millisecond; one that takes long delays all other
  // requests.
  const seen = `${tally(statuses)}, recorded ${recorded}, slowest ${slowestMs.toFixed()} ms`;
  return { tried: statuses.length, seen, wrong };
}

export const bodies: readonly Attack[] = [
  {
    name: "bodies of another type than JSON in UTF-8, or compressed, are refused",
    expected: "415, recorded 0",
    async run(target) {
      await target.recorded();
      const wrong: string[] = [];
      const statuses: number[] = [];
      const lines = [...TYPES.map((type) => [`Content-Type: ${type}`]), [], [JSON_TYPE, "Content-Encoding: gzip"]];
      for (const path of POSTS) {
        for (const headers of lines) {
          const heard = await target.ask({
            method: "POST",
            path,
            headers: [...headers, WITH_TOKEN],
            body: goodBody(path),
          });
          statuses.push(heard.status);
          if (slugOf(heard) !== "unsupported-media-type") wrong.push(`${path} ${headers.join()}: ${heard.status}`);
        }
      }
      const recorded = (await target.recorded()).length;
      if (recorded > 0) wrong.push(`recorded ${recorded}`);
      return { tried: statuses.length, seen: `${tally(statuses)}, recorded ${recorded}`, wrong };
    },
  },
  {
    name: "invalid, ambiguous or unstorable JSON is refused as malformed",
    expected: "400, recorded 0",
    run: (target) => refuse(target, MALFORMED, "malformed-request"),
  },
  {
    name: "JSON with prototypes, methods or excessive values is refused as invalid",
    expected: "422, recorded 0",
    run: (target) => refuse(target, UNFIT, "invalid-request"),
  },
  {
    name: "texts of all scripts, directions and controls are recorded unchanged",
    expected: "altered 0",
    async run(target) {
      await target.recorded();
      const wrong: string[] = [];
      const escaped = (json: string) =>
        json.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
      for (const text of TEXTS) {
        const json = JSON.stringify({ ...(JSON.parse(goodBody("/api/tracking/event")) as object), user_agent: text });
        for (const body of [json, escaped(json)]) {
          const { status } = await post(target, "/api/tracking/event", body);
          if (status !== 202) wrong.push(`${JSON.stringify(text)}: ${status}`);
        }
      }
      const kept = (await target.recorded()).map(({ data }) => data["user_agent"]);
      const wanted = TEXTS.flatMap((text) => [text, text]);
      const altered = wanted.filter((text, at) => kept[at] !== text);
      wrong.push(...altered);
      return { tried: wanted.length, seen: `kept ${kept.length}, altered ${altered.length}`, wrong };
    },
  },
];
