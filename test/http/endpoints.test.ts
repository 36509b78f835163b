// These tests run parts of the service inside the test process.
import { afterAll, describe, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { feature } from "../../src/http/http-context.ts";
import { jsonBody } from "../../src/http/server/body.ts";
import { listEndpoints, declare, reply, type Protection } from "../../src/http/server/endpoint.ts";
import { describeEndpoints } from "../../src/http/endpoints.ts";
import { problems, type Problem } from "../../src/http/server/problem.ts";
import { documentedPath, everyOperation } from "../fuzz/parse-openapi-operations.ts";
import { ACTIONS, READINGS } from "./paths-beyond-specification.ts";
import { ask, GOOD, openApp, TOKEN } from "../harness/in-process/app.ts";

const ENDPOINTS = describeEndpoints();

/**
 * The endpoints that the project's specification fixed at the start. They are written out here, so that a change of the
 * code cannot change them.
 */
const SPECIFIED = [
  "GET /social/health open",
  "GET /social/auth open",
  "GET /social/callback open",
  "GET /social/me strict",
  "POST /social/run strict",
  "GET /social/stats strict",
  "GET /api/health open",
  "POST /api/notify strict",
  "POST /api/tracking/event strict",
  "POST /api/tracking/test token",
  "POST /api/messaging token",
];

/**
 * Endpoints that a network calls. The network proves itself by a secret that is not a token, so these endpoints count
 * as open.
 */
const FOR_NETWORKS = ["GET /api/messaging/whatsapp open", "POST /api/messaging/whatsapp open"];

const isSpecified = ({ path }: { readonly path: string }): boolean => /^\/(social|api)(\/|$)/.test(path);

test("/social and /api hold exactly the specified endpoints, actions and reads, each with its protection", () => {
  const listed = ENDPOINTS.filter(isSpecified).map(({ method, path, protection }) => `${method} ${path} ${protection}`);
  const wanted = [...SPECIFIED, ...ACTIONS.map((path) => `POST ${path} token`), ...READINGS, ...FOR_NETWORKS];
  expect(listed.toSorted()).toEqual(wanted.toSorted());
});

test("every endpoint has a unique path and method, and a unique id", () => {
  for (const names of [ENDPOINTS.map(({ method, path }) => `${method} ${path}`), ENDPOINTS.map(({ id }) => id)]) {
    expect(new Set(names).size).toBe(names.length);
  }
});

/** Protection of an endpoint -> the policies under which the endpoint admits a caller without a token. */
const WITHOUT_TOKEN: Readonly<Record<Protection, readonly string[]>> = {
  open: ["spec", "strict", "spec without tokens"],
  strict: ["spec", "spec without tokens"],
  token: [],
  session: ["spec without tokens"],
  form: ["spec without tokens"],
};

const apps = {
  spec: await openApp({ authPolicy: "spec" }),
  strict: await openApp({ authPolicy: "strict", redirects: "before" }),
  "spec without tokens": await openApp({ authPolicy: "spec", tokens: false }),
};
const link = { domain: "go.example", code: ":code", target: "https://shop.example/" };
const recipient = { id: "101", username: "ann" };
const about = { attempt_id: "a", run_id: "r", text: "Hi", variant: "A", day: "2026-03-01" };
await apps.strict.append(
  "outreach",
  { type: "LinkAdded", data: link },
  { type: "DirectMessageAttempted", data: { ...about, recipient, opt_out_code: ":code" } },
  {
    type: "DirectMessageSent",
    data: { attempt_id: "a", run_id: "r", recipient, message_id: "m", settled_by: "answer" },
  },
);
const documentedOperations = everyOperation(await (await ask(apps.spec.app, "/openapi.json")).text());
afterAll(async () => {
  for (const opened of Object.values(apps)) await opened[Symbol.asyncDispose]();
});

describe.each(ENDPOINTS)("$method $path", ({ method, path, protection, ...operation }) => {
  const asked = { method, ...(path in GOOD ? { body: GOOD[path as keyof typeof GOOD] } : {}) };

  test("is served to a caller with a token", async () => {
    const { status } = await ask(apps.strict.app, path, { ...asked, token: TOKEN });
    expect([404, 405]).not.toContain(status);
  });

  test.each(Object.keys(apps) as (keyof typeof apps)[])(
    "requires a token if its protection does so under the policy: %s",
    async (policy) => {
      const response = await ask(apps[policy].app, path, asked);
      const isAsked = response.headers.get("www-authenticate")?.startsWith("Bearer") === true && path !== "/session";
      expect(isAsked).toBe(!WITHOUT_TOKEN[protection].includes(policy));
    },
  );

  test("is documented with its body, responses and problems", async () => {
    const documented = documentedOperations.find(
      (each) => each.path === documentedPath(path) && each.method === method,
    );
    expect(documented).toMatchObject({ id: operation.id });
    expect(documented?.body?.type).toBe(operation.body?.type as never);
    const statuses = Object.keys(operation.answers).map(Number);
    expect(statuses.length).toBeGreaterThan(0);
    expect([...(documented?.answers.keys() ?? [])]).toEqual(expect.arrayContaining(statuses));
    for (const name of operation.problems) {
      const { status, slug } = (problems[name] as (...words: unknown[]) => Problem)();
      const schema = documented?.answers.get(status)?.content.get("application/problem+json");
      expect(schema?.properties?.["type"]?.enum).toContain(`urn:reachlog:problem:${slug}`);
    }
  });
});

const declared = { summary: "Nothing.", description: "Nothing." };
const detail = declare("nothing", "service", "open", declared);
const answered = { 200: reply("Nothing.", Type.Object({ id: Type.String() })) };
const body = jsonBody(Type.Object({}));
const nothing = () => ({ id: "1" });

test("a route with an incomplete or wrong declaration does not compile", () => {
  const good = feature("good", "")
    .get("/a", nothing, { response: answered, detail })
    .post("/a", nothing, { body, response: answered, detail });
  const refused: unknown[] = [
    // @ts-expect-error: no protection
    declare("nothing", "service", declared),
    // @ts-expect-error: a protection that there is not
    declare("nothing", "service", "public", declared),
    // @ts-expect-error: a problem that there is not
    declare("nothing", "service", "open", { ...declared, problems: ["puzzled"] }),
    // @ts-expect-error: an answer that is none of those that are declared
    feature("refused", "").get("/a", () => ({ name: "1" }), { response: answered, detail }),
    // @ts-expect-error: a status that is not declared
    feature("refused", "").get("/a", ({ status }) => status(202, { id: "1" }), { response: answered, detail }),
    // @ts-expect-error: a handler that wants what the service does not have
    feature("refused", "").get("/a", ({ missing }) => ({ id: missing }), { response: answered, detail }),
  ];
  expect([good.routes.length, refused.length]).toEqual([2, 6]);
});

test.each([
  ["no operation", feature("bare", "").get("/a", nothing, { response: answered })],
  ["no answers", feature("bare", "").get("/a", nothing, { detail })],
  ["a POST body without a schema", feature("bare", "").post("/a", nothing, { response: answered, detail })],
  [
    "the scope `read` and no statement on personal data",
    feature("bare", "").get("/a", nothing, {
      response: answered,
      detail: declare("nothing", "service", ["token", "read"], declared),
    }),
  ],
  ["a GET body", feature("bare", "").get("/a", nothing, { body, response: answered, detail })],
])("the list of endpoints rejects a route with %s", (_what, routes) => {
  expect(() => listEndpoints(routes)).toThrow("/a declares no");
});
