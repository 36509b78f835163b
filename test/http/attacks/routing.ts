import { TOKEN } from "../../harness/process.ts";
import { JSON_TYPE, requestBytes } from "../wire/raw-request-bytes.ts";
import { tally, type Attack } from "./attack.ts";
import { allowOf, goodBody, OPEN, PATHS, POSTS } from "./routes.ts";
import { slugOf } from "./target.ts";

const HOSTS = (port: string): readonly string[] => [
  "evil.example",
  `evil.example:${port}`,
  `localhost.evil.example:${port}`,
  `127.0.0.1.evil.example`,
  `127.0.0.1:${port}.evil.example`,
  `127.0.0.1:${port}@evil.example`,
  `evil.example@127.0.0.1:${port}`,
  `127.0.0.1/api/messaging`,
  `127.0.0.1:${port}/`,
  `127.0.0.1:${port}#`,
  `127.0.0.1:${port}?`,
  `127.0.0.1:${port}, evil.example`,
  `127.0.0.1 evil.example`,
  `127.1:${port}`,
  "2130706433",
  "0x7f.1",
  "[::ffff:127.0.0.1]",
  "localhost.",
  "x",
  "xy",
  "a:b",
  "..",
];

/**
 * Each function spells a path differently, such as with `//` or `%2f`. Some lax servers and proxies take the result for
 * the original path.
 */
const DISGUISES: readonly ((path: string) => string)[] = [
  (path) => `/${path}`,
  (path) => `${path}/`,
  (path) => path.replaceAll("/", "//"),
  (path) => path.replaceAll("/", "/./"),
  (path) => `/social/health/../..${path}`,
  (path) => `/api/health/%2e%2e/%2e%2e${path}`,
  (path) => `/social/auth/..%2f..${path}`,
  (path) => `/api/health/..;/..;${path}`,
  (path) => path.replace(/\/(?=[^/]+$)/, "%2f"),
  (path) => path.replaceAll("/", "\\"),
  (path) => path.replace(/[a-z]/, (letter) => letter.toUpperCase()),
  (path) => path.toUpperCase(),
  (path) => path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
  (path) => path.replace(/[a-z](?=[a-z]*$)/, (letter) => `%25${letter.charCodeAt(0).toString(16)}`),
  (path) => `${path}%00`,
  (path) => `${path}%20`,
  (path) => `${path}%0d%0aX-Injected:%20a`,
  (path) => `${path};x=1`,
  (path) => `${path}.json`,
  (path) => `${path}#`,
  (path) => `${path}%3f`,
  (path) => `${path}/..`,
  (path) => `${path}/../health`,
  (path) => path.replace(/e/, "\u0435"),
  (path) => `/aa${path}`,
  (path) => `http://127.0.0.1${path}`,
  (path) => `http://evil.example${path}`,
];

const METHODS = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "TRACE",
  "CONNECT",
  "PROPFIND",
  "SEARCH",
  "QUERY",
  "FOO",
  "get",
  "Post",
  "POST_",
];

const ORIGINS = ["https://evil.example", "null", "http://127.0.0.1", "http://localhost:3000", "file://"];

export const routing: readonly Attack[] = [
  {
    name: "a foreign, missing or repeated Host is refused",
    expected: "421 or 400 before any route",
    async run(target) {
      const own = new URL(target.url).host;
      const token = `Authorization: Bearer ${TOKEN}`;
      const lists = [
        ...HOSTS(new URL(target.url).port).map((host) => [`Host: ${host}`]),
        [`Host: ${own}`, "Host: evil.example"],
        ["Host: evil.example", `Host: ${own}`],
        ["Host: "],
        ["Host:"],
        ["Host : a"],
      ];
      const wrong: string[] = [];
      const statuses: number[] = [];
      // Some routers look for the path only after the first 11 characters of the URL. If the Host header has only one
      // letter, they take `/aa/social/stats` for `/social/stats`. The service must refuse such a host.
      for (const path of ["/social/stats", "/aa/social/stats", "http://127.0.0.1/social/stats"]) {
        for (const headers of lists) {
          const { status } = await target.ask({ path, headers: [...headers, token] });
          statuses.push(status);
          if (status !== 421 && status !== 400) wrong.push(`${path} ${headers.join()}: ${status}`);
        }
      }
      const forwarded = await target.ask({
        path: "/social/auth",
        headers: ["X-Forwarded-Host: evil.example", "Forwarded: host=evil.example", "X-Forwarded-Proto: https"],
      });
      if (forwarded.answers[0]?.headers.get("location")?.[0]?.includes("evil") !== false)
        wrong.push("a forwarded host counts");
      return { tried: statuses.length + 1, seen: tally(statuses), wrong };
    },
  },
  {
    name: "a disguised guarded path is not served without a token",
    expected: "400, 401, 404, 405, 421 or 505, recorded 0",
    async run(target) {
      await target.recorded();
      const guarded = PATHS.filter(({ path }) => !OPEN.includes(path) && path !== "/");
      const wrong: string[] = [];
      const statuses: number[] = [];
      for (const { path, method } of guarded) {
        for (const disguise of DISGUISES) {
          const disguised = Buffer.from(disguise(path)).toString("latin1");
          const body = method === "POST" ? { body: goodBody(path as (typeof POSTS)[number]) } : {};
          const { status } = await target.ask({ method, path: disguised, headers: [JSON_TYPE], ...body });
          statuses.push(status);
          if (![400, 401, 404, 405, 421, 505].includes(status) && !isOpenNow(disguised))
            wrong.push(`${disguised}: ${status}`);
        }
      }
      const recorded = (await target.recorded()).length;
      if (recorded > 0) wrong.push(`recorded ${recorded}`);
      return { tried: statuses.length, seen: `${tally(statuses)}, recorded ${recorded}`, wrong };
    },
  },
  {
    name: "every path refuses all methods but its own",
    expected: "405 with Allow but for its own; unknown methods 400 or hung up",
    async run(target) {
      const wrong: string[] = [];
      const statuses: number[] = [];
      for (const path of new Set(PATHS.map((one) => one.path))) {
        const allowed = allowOf(path);
        const own = allowed.split(", ");
        for (const method of METHODS) {
          if (own.includes(method) && method !== "HEAD") continue;
          using connection = await target.open();
          if (method === "HEAD") connection.expectNoBody();
          const headers = ["X-HTTP-Method-Override: POST", "X-HTTP-Method: POST", `Authorization: Bearer ${TOKEN}`];
          await connection.write(requestBytes(target.url, { method, path, headers }));
          const [answer] = await connection.answered(1);
          statuses.push(answer?.status ?? 0);
          if (method === "HEAD" && own.includes("HEAD")) {
            if (answer === undefined || answer.status === 405 || answer.body !== "") wrong.push(`HEAD ${path}`);
            continue;
          }
          const allow = answer?.headers.get("allow")?.[0];
          const isRefused =
            answer === undefined || answer.status === 400 || (answer.status === 405 && allow === allowed);
          if (!isRefused) wrong.push(`${method} ${path}: ${answer.status}`);
        }
      }
      return { tried: statuses.length, seen: tally(statuses), wrong };
    },
  },
  {
    name: "pages of other origins receive no CORS headers",
    expected: "no Access-Control header; what a form can send 415",
    async run(target) {
      const wrong: string[] = [];
      const statuses: number[] = [];
      for (const origin of ORIGINS) {
        for (const { path, method } of PATHS) {
          const asked = ["Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization"];
          for (const way of ["OPTIONS", method]) {
            const heard = await target.ask({
              method: way,
              path,
              headers: [`Origin: ${origin}`, ...(way === "OPTIONS" ? asked : [])],
            });
            statuses.push(heard.status);
            const names = [...(heard.answers[0]?.headers.keys() ?? [])];
            if (names.some((name) => name.startsWith("access-control"))) wrong.push(`${way} ${path} for ${origin}`);
          }
        }
        for (const path of POSTS) {
          for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"]) {
            const headers = [`Origin: ${origin}`, `Content-Type: ${type}`, `Authorization: Bearer ${TOKEN}`];
            const heard = await target.ask({ method: "POST", path, headers, body: goodBody(path) });
            statuses.push(heard.status);
            if (slugOf(heard) !== "unsupported-media-type") wrong.push(`${type} ${path}: ${heard.status}`);
          }
        }
      }
      return { tried: statuses.length, seen: tally(statuses), wrong };
    },
  },
];

/**
 * True if the service takes this spelling for a path that needs no token. It resolves dot segments, backslashes and
 * surplus slashes before it looks a path up.
 */
function isOpenNow(disguised: string): boolean {
  const { pathname } = new URL(disguised, "http://127.0.0.1");
  return OPEN.includes(pathname.replace(/\/{2,}/g, "/").replace(/(?<=.)\/$/, ""));
}
