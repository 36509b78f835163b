import { BEARER } from "../../harness/process.ts";
import { RUNTIME } from "../../harness/bun-deno-or-binary.ts";
import { JSON_TYPE, requestBytes, type Sent } from "../wire/raw-request-bytes.ts";
import { tally, type Attack } from "./attack.ts";
import { goodBody } from "./routes.ts";

const PATH = "/api/tracking/event";
const BODY = goodBody(PATH);
const SIZE = BODY.length;
const HEX = SIZE.toString(16);
const CHUNKED = `${HEX}\r\n${BODY}\r\n0\r\n\r\n`;
const AUTHORIZATION = `Authorization: ${BEARER.authorization}`;

/** Builds a request to record a click. The service would record it if it accepted the length headers in `lines`. */
const framed = (lines: readonly string[], body = BODY): Sent => ({
  method: "POST",
  path: PATH,
  headers: [JSON_TYPE, AUTHORIZATION, ...lines],
  body,
});

/**
 * Requests whose end two parsers may see at different places, because their length headers contradict each other or are
 * malformed.
 */
const AMBIGUOUS: readonly Sent[] = [
  framed([`Content-Length: ${SIZE}`, "Transfer-Encoding: chunked"], CHUNKED),
  framed(["Transfer-Encoding: chunked", `Content-Length: ${CHUNKED.length}`], CHUNKED),
  framed([`Content-Length: ${SIZE}`, "Content-Length: 5"]),
  ...[`${SIZE}, ${SIZE}`, `+${SIZE}`, "-1", `0x${HEX}`, `${SIZE} 1`, "", "abc", `${SIZE}.0`, "9".repeat(30)].map(
    (length) => framed([`Content-Length: ${length}`]),
  ),
  framed([`Content-Length : ${SIZE}`]),
  ...[
    "xchunked",
    "identity",
    "gzip, chunked",
    "chunked, identity",
    "chunked;x",
    "\x0bchunked",
    "chunked, chunked",
    '"chunked"',
  ].map((coding) => framed([`Transfer-Encoding: ${coding}`], CHUNKED)),
  framed(["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], CHUNKED),
  framed(["Transfer-Encoding:", " chunked"], CHUNKED),
  framed(["Transfer-Encoding : chunked"], CHUNKED),
  ...["zz", `0x${HEX}`, `-${HEX}`, `1000000000000000${HEX}`, `${HEX} `, ""].map((size) =>
    framed(["Transfer-Encoding: chunked"], `${size}\r\n${BODY}\r\n0\r\n\r\n`),
  ),
  framed(["Transfer-Encoding: chunked"], `${HEX}\n${BODY}\n0\n\n`),
  framed(["Transfer-Encoding: chunked"], `${HEX}\r\n${BODY}XX0\r\n\r\n`),
  framed(["Transfer-Encoding: chunked"], `${HEX}\r\n${BODY}0\r\n\r\n`),
  framed(["X-Folded: a", " b", `Content-Length: ${SIZE}`]),
  framed(["X-Nul: a\0b", `Content-Length: ${SIZE}`]),
  framed(["X-Return: a\rb", `Content-Length: ${SIZE}`]),
  framed(["No-Colon", `Content-Length: ${SIZE}`]),
  framed([": no name", `Content-Length: ${SIZE}`]),
  framed(["X Spaced: a", `Content-Length: ${SIZE}`]),
];

/** Request lines and first bytes that are not valid HTTP/1.1. */
const LINES = [
  `POST ${PATH} HTTP/2.0\r\n`,
  `POST ${PATH} HTTP/1.2\r\n`,
  `POST ${PATH} HTTP/1.1\n`,
  `POST ${PATH}\r\n`,
  ` POST ${PATH} HTTP/1.1\r\n`,
  `POST ${PATH}\0 HTTP/1.1\r\n`,
  `POST ${PATH.slice(1)} HTTP/1.1\r\n`,
  "PRI * HTTP/2.0\r\n",
  "OPTIONS * HTTP/1.1\r\n",
  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n",
  "SSH-2.0-OpenSSH_9.7\r\n",
  // These lines have only one possible meaning, and RFC 9112 (sections 2.2 and 3) lets a server accept them.
  // `node:http` does, so on Deno they are left out.
  ...(RUNTIME === "deno" ? [] : [`\r\n\r\nPOST ${PATH} HTTP/1.1\r\n`, `POST  ${PATH} HTTP/1.1\r\n`]),
];

export const framing: readonly Attack[] = [
  {
    name: "requests with ambiguous framing, or not in HTTP, are refused",
    expected: "refused or hung up, recorded 0",
    async run(target) {
      await target.recorded();
      const head = `Host: ${new URL(target.url).host}\r\n${JSON_TYPE}\r\n${AUTHORIZATION}\r\nContent-Length: ${SIZE}\r\n\r\n`;
      const tries = [
        ...AMBIGUOUS.map((sent) => requestBytes(target.url, sent)),
        ...LINES.map((line) => Buffer.from(line + head + BODY, "latin1")),
      ];
      const wrong: string[] = [];
      const statuses: number[] = [];
      for (const bytes of tries) {
        const { status, answers } = await target.send(bytes);
        statuses.push(status);
        const isRefused = status === 0 || status === 400 || status === 413 || status === 505;
        if (!isRefused || answers.length > 1) wrong.push(`${status}: ${bytes.toString("latin1")}`);
      }
      const recorded = (await target.recorded()).length;
      if (recorded !== 0) wrong.push(`recorded ${recorded}`);
      const control = await target.ask(framed([]));
      if (control.status !== 202) wrong.push(`a good one is answered ${control.status}`);
      return { tried: tries.length, seen: `${tally(statuses)}, recorded ${recorded}`, wrong };
    },
  },
  {
    name: "a second request hidden behind a wrong length is not recorded",
    expected: "each refused or asked for a token of its own, recorded 0",
    async run(target) {
      await target.recorded();
      const hidden = requestBytes(target.url, { method: "POST", path: PATH, headers: [JSON_TYPE], body: BODY });
      const wrong: string[] = [];
      const statuses: number[] = [];
      for (const length of [0, 1, SIZE - 1]) {
        using connection = await target.open();
        await connection.write(requestBytes(target.url, framed([`Content-Length: ${length}`], BODY.slice(0, length))));
        await connection.answered(1);
        await connection.write(hidden);
        for (const { status } of await connection.answered(2)) {
          statuses.push(status);
          if (status !== 400 && status !== 401 && status !== 422) wrong.push(`length ${length}: ${status}`);
        }
      }
      const recorded = (await target.recorded()).length;
      if (recorded !== 0) wrong.push(`recorded ${recorded}`);
      return { tried: 3, seen: `${tally(statuses)}, recorded ${recorded}`, wrong };
    },
  },
  {
    name: "a body that ends before its length is not recorded",
    expected: "recorded 0, faults in the log 0",
    async run(target) {
      await target.recorded();
      const logged = target.service.log().length;
      const tries = 20;
      for (let time = 0; time < tries; time++) {
        using connection = await target.open();
        await connection.write(requestBytes(target.url, framed([`Content-Length: ${SIZE + 1}`])));
        if (time % 2 === 0) {
          connection.end();
          await connection.closed();
        }
      }
      const recorded = (await target.recorded()).length;
      const faults = target.service.log().slice(logged).split('"level":"error"').length - 1;
      const wrong = recorded === 0 && faults === 0 ? [] : ["see the row"];
      return { tried: tries, seen: `recorded ${recorded}, faults in the log ${faults}`, wrong };
    },
  },
  {
    name: "too many headers, a long header or a long address are refused",
    expected: "431; what is just long is served",
    async run(target) {
      const wrong: string[] = [];
      const cases: readonly (readonly [Sent, number])[] = [
        [{ path: "/api/health", headers: Array.from({ length: 90 }, (_, at) => `X-${at}: a`) }, 200],
        [{ path: "/api/health", headers: Array.from({ length: 300 }, (_, at) => `X-${at}: a`) }, 431],
        [{ path: "/api/health", headers: [`X-Long: ${"a".repeat(12_000)}`] }, 200],
        [{ path: "/api/health", headers: [`X-Long: ${"a".repeat(20_000)}`] }, 431],
        [{ path: `/api/health?${"a".repeat(12_000)}` }, 200],
        [{ path: `/api/health?${"a".repeat(20_000)}` }, 431],
      ];
      for (const [sent, wanted] of cases) {
        const { status } = await target.ask(sent);
        if (status !== wanted) wrong.push(`${status} in place of ${wanted}`);
      }
      return { tried: cases.length, seen: wrong.length === 0 ? "as expected" : wrong.join(), wrong };
    },
  },
  {
    name: "pipelined POSTs, repeated by their keys, are recorded once",
    expected: "each recorded once",
    async run(target) {
      await target.recorded();
      const keys = ["a", "b", "c"].map((name) => `Idempotency-Key: pipelined-${name}`);
      using connection = await target.open();
      await connection.write(Buffer.concat(keys.map((key) => requestBytes(target.url, framed([key])))));
      const { length } = await connection.answered(keys.length);
      const statuses: number[] = [];
      for (const key of keys) statuses.push((await target.ask(framed([key]))).status);
      const clicks = (await target.recorded()).length;
      const wrong = clicks === keys.length && statuses.every((status) => status === 202) ? [] : ["see the row"];
      return {
        tried: keys.length,
        seen: `answered at once ${length}, repeats ${tally(statuses)}, clicks ${clicks}`,
        wrong,
      };
    },
  },
];
