// On the memory harness.
import { afterAll, describe, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { json } from "../../src/http/server/answer.ts";
import { jsonBody } from "../../src/http/server/body.ts";
import type { Endpoint, Operation, Protection } from "../../src/http/server/endpoint.ts";
import { ENDPOINTS } from "../../src/http/endpoints.ts";
import { problems, type Problem } from "../../src/http/server/problem.ts";
import { documentedPath, operationsOf } from "../fuzz/document.ts";
import { ACTIONS, READINGS } from "./actions.ts";
import { ask, GOOD, openApp, TOKEN } from "../harness/memory/app.ts";

/** The endpoints of the specification, written down a second time: they never change. */
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

const isSpecified = ({ path }: { readonly path: string }): boolean => /^\/(social|api)(\/|$)/.test(path);

test("the endpoints under /social and /api are those of the specification, protected as it says, and the actions", () => {
  const listed = ENDPOINTS.filter(isSpecified).map(({ method, path, protection }) => `${method} ${path} ${protection}`);
  expect(listed).toEqual([...SPECIFIED, ...ACTIONS.map((path) => `POST ${path} token`), ...READINGS]);
});

test("no endpoint is listed twice, and none takes another's name", () => {
  for (const names of [
    ENDPOINTS.map(({ method, path }) => `${method} ${path}`),
    ENDPOINTS.map(({ operation }) => operation.id),
  ]) {
    expect(new Set(names).size).toBe(names.length);
  }
});

/** Who may ask without a token, by the policy and by whether any token is configured. */
const ANYBODY: Readonly<Record<Protection, readonly string[]>> = {
  open: ["spec", "strict", "spec without tokens"],
  strict: ["spec", "spec without tokens"],
  token: [],
  session: ["spec without tokens"],
  form: ["spec without tokens"],
};

const apps = {
  spec: await openApp({ authPolicy: "spec" }),
  strict: await openApp({ authPolicy: "strict" }),
  "spec without tokens": await openApp({ authPolicy: "spec", tokens: false }),
};
afterAll(async () => {
  for (const opened of Object.values(apps)) await opened[Symbol.asyncDispose]();
});

describe.each(ENDPOINTS)("$method $path", ({ method, path, protection, operation }) => {
  const asked = { method, ...(path in GOOD ? { body: GOOD[path as keyof typeof GOOD] } : {}) };

  test("is served to whoever has a token", async () => {
    const { status } = await ask(apps.strict.app, path, { ...asked, token: TOKEN });
    expect([404, 405]).not.toContain(status);
  });

  test.each(Object.keys(apps) as (keyof typeof apps)[])(
    "asks for a token as its protection says: %s",
    async (policy) => {
      const response = await ask(apps[policy].app, path, asked);
      const isAsked = response.headers.get("www-authenticate")?.startsWith("Bearer") === true && path !== "/session";
      expect(isAsked).toBe(!ANYBODY[protection].includes(policy));
    },
  );

  test("is documented, with its body, and every answer and problem that it names", async () => {
    const document = operationsOf(await (await ask(apps.spec.app, "/openapi.json")).text());
    const documented = document.find((each) => each.path === documentedPath(path) && each.method === method);
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

test("an entry that leaves something out, or takes what it cannot, does not compile", () => {
  const operation = {
    id: "nothing",
    tag: "service",
    summary: "Nothing.",
    description: "Nothing.",
    answers: { 200: { says: "Nothing." } },
    problems: [],
    handle: () => json(200, {}),
  } as const satisfies Operation<object>;
  const body = jsonBody(Type.Object({}));
  const good: Endpoint<object>[] = [
    { method: "GET", path: "/a", protection: "open", operation },
    { method: "POST", path: "/a", protection: "open", operation: { ...operation, body } },
  ];
  const refused: unknown[] = [
    // @ts-expect-error: no protection
    { method: "GET", path: "/a", operation } satisfies Endpoint<object>,
    // @ts-expect-error: a protection that there is not
    { method: "GET", path: "/a", protection: "public", operation } satisfies Endpoint<object>,
    // @ts-expect-error: no operation
    { method: "GET", path: "/a", protection: "open" } satisfies Endpoint<object>,
    // @ts-expect-error: no answers
    { ...operation, answers: undefined } satisfies Operation<object>,
    // @ts-expect-error: not one answer
    { ...operation, answers: {} } satisfies Operation<object>,
    // @ts-expect-error: a problem that nobody knows
    { ...operation, problems: ["puzzled"] } satisfies Operation<object>,
    // @ts-expect-error: a POST whose body nobody checks
    { method: "POST", path: "/a", protection: "open", operation } satisfies Endpoint<object>,
    // @ts-expect-error: a GET with a body
    { method: "GET", path: "/a", protection: "open", operation: { ...operation, body } } satisfies Endpoint<object>,
    // @ts-expect-error: a handler that wants what the service does not have
    { ...operation, handle: ({ missing }: { missing: string }) => json(200, missing) } satisfies Operation<object>,
  ];
  expect([good.length, refused.length]).toEqual([2, 9]);
});
