// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { Ajv } from "ajv";
import { default as addFormats } from "ajv-formats";
import { createApp } from "../../../src/http/app.ts";
import { describeEndpoints } from "../../../src/http/endpoints.ts";
import { declaredProblem, problems, type Problem } from "../../../src/http/server/problem.ts";
import { createSessions } from "../../../src/http/access/session.ts";
import { forPrograms } from "../../../src/http/server/openapi.ts";
import { documentedPath, everyOperation, operationsOf, type Schema } from "../../fuzz/parse-openapi-operations.ts";
import { ACTIONS } from "../paths-beyond-specification.ts";
import { ask, MASTER_KEY, openApp, TOKEN, type Given, post, createClaims } from "../../harness/in-process/app.ts";

const ENDPOINTS = forPrograms(describeEndpoints());

async function documentOf(given: Given = {}): Promise<string> {
  await using world = await openApp(given);
  return await (await ask(world.app, "/openapi.json")).text();
}

test("exactly the paths and methods for programs are documented", async () => {
  const documented = operationsOf(await documentOf()).map(({ path, method }) => `${method} ${path}`);
  expect(documented.sort()).toEqual(ENDPOINTS.map(({ path, method }) => `${method} ${documentedPath(path)}`).sort());
});

test("each placeholder in a path is a required parameter", async () => {
  for (const { path, parameters } of operationsOf(await documentOf())) {
    expect(parameters).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? ""));
  }
  const { paths } = JSON.parse(await documentOf()) as Described;
  expect(paths["/api/audit/proof/{event}"]?.["get"]?.["parameters"]).toMatchObject([
    { name: "event", in: "path", required: true },
  ]);
});

test("every problem is documented under its own status", async () => {
  const documented = new Set<string>();
  for (const { answers } of everyOperation(await documentOf())) {
    for (const [status, { content }] of answers) {
      for (const type of content.get("application/problem+json")?.properties?.["type"]?.enum ?? [])
        documented.add(`${status} ${String(type)}`);
    }
  }
  const made = Object.values(problems).map((make) => (make as (...words: unknown[]) => Problem)());
  // The service refuses methods that do not exist. The document does not contain such methods, so it cannot contain
  // this refusal.
  const nowhere = ["method-not-allowed"];
  const declared = ENDPOINTS.flatMap(({ refusals = {} }) =>
    Object.entries(refusals).map(([name, one]) => declaredProblem({ ...one, name, more: {} })),
  );
  const wanted = [...made.filter(({ slug }) => !nowhere.includes(slug)), ...declared];
  expect([...documented].sort()).toEqual(
    [...new Set(wanted.map(({ status, slug }) => `${status} urn:reachlog:problem:${slug}`))].sort(),
  );
});

interface Described {
  readonly info: object;
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, unknown>>>>>>;
  readonly components: Readonly<Record<string, object>>;
}

/** Checks the rules of the OpenAPI linters Redocly and Spectral, which are too large to be installed here. */
test("the document follows the rules of Redocly and Spectral", async () => {
  const text = await documentOf();
  const { info, tags, paths, components } = JSON.parse(text) as Described;
  expect(info).toMatchObject({ contact: expect.any(Object), license: expect.any(Object) });
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  for (const operation of operations) {
    expect(operation).toMatchObject({
      operationId: expect.stringMatching(/^[a-zA-Z]+$/),
      summary: expect.stringMatching(/./),
      description: expect.stringMatching(/./),
      tags: [expect.stringMatching(new RegExp(`^(${tags.map(({ name }) => name).join("|")})$`))],
      responses: { default: expect.any(Object) },
    });
  }
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(ENDPOINTS.length);
  const names = Object.entries(components)
    .filter(([kind]) => kind !== "securitySchemes")
    .flatMap(([kind, each]) => Object.keys(each).map((name) => `${kind}/${name}`));
  expect(names.filter((name) => !text.includes(`"#/components/${name}"`))).toEqual([]);
});

/**
 * Body -> members that its example lacks: other members of the example exclude them. `occurred_at` is missing because
 * any fixed time is soon too old for a conversion.
 */
const EXCLUDED: Readonly<Record<string, readonly string[]>> = {
  "recordConversion body": ["click_id", "recipient", "amount", "occurred_at"],
};

test("every JSON body and response has an example that fits its schema", async () => {
  const ajv = addFormats(new Ajv({ strict: false }));
  const { paths, components } = JSON.parse(await documentOf()) as Described;
  const contents = Object.values(paths).flatMap((methods) => Object.values(methods).flatMap(contentsOf));
  expect(contents.length).toBeGreaterThan(40);
  for (const [where, { schema, example }] of contents) {
    expect([where, ajv.validate({ ...schema, components }, example), ajv.errors]).toEqual([where, true, null]);
    const { properties = {} } = (components["schemas"] as Record<string, Schema>)[nameOf(schema)] ?? schema;
    // The example must contain every member except the excluded ones.
    const wanted = Object.keys(properties).filter((name) => !(EXCLUDED[where] ?? []).includes(name));
    expect([where, Object.keys(example as object)]).toEqual([where, wanted]);
  }
});

/** A JSON schema, possibly only a reference (`$ref`) to a named one. */
type Referring = Schema & { readonly $ref?: string };

const nameOf = ({ $ref = "" }: Referring): string => $ref.split("/").at(-1)!;

/** Returns the JSON body and the JSON responses of an operation; problems have another media type. */
function contentsOf({ operationId, requestBody, responses }: Readonly<Record<string, unknown>>) {
  const holders = { body: requestBody, ...(responses as object) } as Readonly<Record<string, Holder | undefined>>;
  return Object.entries(holders).flatMap(([name, holder]) => {
    const content = holder?.content?.["application/json"];
    const isObject = content?.schema.type === "object" || content?.schema.$ref !== undefined;
    return isObject ? [[`${String(operationId)} ${name}`, content] as const] : [];
  });
}

interface Holder {
  readonly content?: Readonly<Record<string, { readonly schema: Referring; readonly example: unknown }>>;
}

test("no problem is listed twice for one status", async () => {
  for (const { id, answers } of operationsOf(await documentOf())) {
    for (const [status, { content }] of answers) {
      const types = content.get("application/problem+json")?.properties?.["type"]?.enum ?? [];
      expect([id, status, types]).toEqual([id, status, [...new Set(types)]]);
    }
  }
});

test("only standard formats are used", async () => {
  const formats = [...(await documentOf()).matchAll(/"format":"([^"]+)"/g)].map(([, format]) => format);
  expect(new Set(formats)).toEqual(new Set(["date-time", "ipv4", "ipv6", "uri", "uuid"]));
});

test("the rate limit headers are documented for the responses that carry them", async () => {
  const strict = operationsOf(await documentOf({ authPolicy: "strict" }));
  const namesAt = (id: string, kind: "headers" | "optional") =>
    [...(strict.find((each) => each.id === id)?.answers ?? [])]
      .filter(([, answer]) => answer[kind].includes("ratelimit") && answer[kind].includes("ratelimit-policy"))
      .map(([status]) => status);
  // A caller with a token has only one limit, the daily limit of messages. So the document names the rate limit headers
  // for runs, and not for notifications.
  expect([namesAt("notify", "headers"), namesAt("notify", "optional")]).toEqual([[], []]);
  expect([namesAt("startRun", "headers"), namesAt("startRun", "optional")]).toEqual([
    [200, 202],
    [400, 401, 409, 422, 429, 500, 503],
  ]);
  expect(namesAt("startAuthorization", "optional")).toEqual([302, 303, 429, 500, 503]);
});

test.each([
  [{ authPolicy: "spec" }, ["/api/tracking/test", "/api/messaging"]],
  [
    { authPolicy: "strict", openRoutes: ["/social/me", "/social/run", "/social/stats"] },
    ["/api/notify", "/api/tracking/event", "/api/tracking/test", "/api/messaging"],
  ],
] as const)("with %j the document requires a token where the service does", async (given, guarded) => {
  const { paths } = JSON.parse(await documentOf(given)) as {
    paths: Record<string, Record<string, { security: object[] }>>;
  };
  const wanting = Object.entries(paths).filter(
    ([, { post }]) => post?.security.every((scheme) => "token" in scheme) === true,
  );
  expect(wanting.map(([path]) => path).toSorted()).toEqual([...guarded, ...ACTIONS].toSorted());
});

test("each operation documents exactly the credentials that it accepts", async () => {
  await using world = await openApp({ authPolicy: "strict" });
  const { app } = world;
  const document = JSON.parse(await (await ask(app, "/openapi.json")).text()) as {
    paths: Record<string, Record<string, { security: object[] }>>;
  };
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const signedIn = await post(app, "/session", `token=${TOKEN}`, { headers });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  const found = Object.entries(document.paths).filter(([path, { get }]) => get !== undefined && !path.includes("{"));
  let checked = 0;
  for (const [path, { get }] of found) {
    const takes = async (given: object) => {
      const answer = await ask(app, path, given);
      if (answer.status === 401) return (await answer.text()).includes("urn:reachlog:problem:not-authorized");
      await answer.body?.cancel();
      return true;
    };
    const taken = {
      token: await takes({ token: TOKEN }),
      session: await takes({ headers: { cookie } }),
      none: await takes({}),
    };
    const named = get?.security.map((scheme) => Object.keys(scheme)[0] ?? "none") ?? [];
    // The document must name every credential that the path accepts. The exception is a session on an open path, which
    // needs none.
    const wanted = Object.entries(taken).filter(([name, isTaken]) => isTaken && (name !== "session" || !taken.none));
    expect([path, named.toSorted()]).toEqual([path, wanted.map(([name]) => name).toSorted()]);
    checked++;
  }
  expect(checked).toBeGreaterThan(10);
});

test("the document is public, also under the strict policy", async () => {
  await using world = await openApp({ authPolicy: "strict" });
  expect((await ask(world.app, "/openapi.json")).status).toBe(200);
});

test.each([
  ["https://reach.example", "__Host-reachlog_session"],
  ["http://localhost", "reachlog_session"],
  ["http://localhost:3001", "reachlog_session_3001"],
])("the console's cookie at %s is documented under its name: %s", async (publicUrl, name) => {
  await using world = await openApp();
  const sessions = createSessions({
    masterKey: MASTER_KEY,
    authentication: world.deps.authentication,
    site: new URL(publicUrl),
    isLocal: true,
    claims: createClaims(),
    clock: () => world.now,
  });
  const app = createApp({ ...world.deps, sessions });
  const { components } = (await (await ask(app, "/openapi.json")).json()) as {
    components: { securitySchemes: { session: { name: string } } };
  };
  expect(components.securitySchemes.session.name).toBe(name);
  expect(sessions.signIn(TOKEN)).toStartWith(`${name}=`);
});
