// These tests start the service or commands as processes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { treaty } from "@elysiajs/eden";
import type { App } from "../../src/http/app.ts";
import { describeEndpoints } from "../../src/http/endpoints.ts";
import { openInstallation, TOKEN, type Installation, type Running } from "../harness/process.ts";

const CLICK = { event: "click", domain: "go.example", short_code: "spring", original_url: "https://shop.example/" };

type Routes = App["~Routes"];

/**
 * True if the type says something about a body or response: it is neither `any` nor `unknown`, which would tell a typed
 * client nothing.
 */
type IsTyped<Type> = 0 extends 1 & Type ? false : unknown extends Type ? false : true;

/**
 * Union of the operations in an app's tree of routes, each written as path and method. If `Typed`, these are the
 * operations with typed bodies and responses; otherwise all others.
 */
type Operations<Tree, Typed extends boolean, Path extends string = ""> = {
  [Key in keyof Tree & string]: Tree[Key] extends { readonly body: infer Body; readonly response: infer Response }
    ? IsTyped<Response[keyof Response]> | (Key extends "post" ? IsTyped<Body> : true) extends Typed
      ? `${Path} ${Key}`
      : never
    : Operations<Tree[Key], Typed, `${Path}/${Key}`>;
}[keyof Tree & string];

type Typed = Operations<Routes, true>;

/**
 * All operations with typed bodies and responses: every operation except the console's forms. A missing or a surplus
 * entry is an error of the compiler.
 */
const OPERATIONS: Readonly<Record<Typed, true>> = {
  " get": true,
  "/api/audit/change get": true,
  "/api/audit/export get": true,
  "/api/audit/head get": true,
  "/api/audit/history get": true,
  "/api/audit/proof/:event get": true,
  "/api/audit/verify get": true,
  "/api/report post": true,
  "/api/audit/verify post": true,
  "/api/clicks get": true,
  "/api/deliveries get": true,
  "/api/deliveries/lag get": true,
  "/campaigns get": true,
  "/campaigns/:name get": true,
  "/social/campaigns get": true,
  "/social/campaigns/show get": true,
  "/social/campaigns/count get": true,
  "/social/campaigns/create post": true,
  "/social/campaigns/change post": true,
  "/social/campaigns/end post": true,
  "/api/links/add post": true,
  "/api/tokens get": true,
  "/api/tracking/conversion post": true,
  "/social/preview get": true,
  "/api/deliveries/channels get": true,
  "/api/deliveries/show get": true,
  "/api/links get": true,
  "/api/deliveries/decide post": true,
  "/api/deliveries/discard post": true,
  "/api/deliveries/settle post": true,
  "/api/deliveries/resume post": true,
  "/api/deliveries/retry post": true,
  "/api/health get": true,
  "/people/import get": true,
  "/social/recipients/preview post": true,
  "/api/messaging post": true,
  "/api/messaging/whatsapp get": true,
  "/api/messaging/whatsapp post": true,
  "/api/notify post": true,
  "/api/tracking/event post": true,
  "/api/tracking/forget post": true,
  "/api/tracking/test post": true,
  "/activity get": true,
  "/attention get": true,
  "/deliveries/decide get": true,
  "/activity/:position get": true,
  "/api/what-if post": true,
  "/what-if get": true,
  "/console.css get": true,
  "/console.js get": true,
  "/deliveries get": true,
  "/docs get": true,
  "/events get": true,
  "/find get": true,
  "/idiomorph.js get": true,
  "/l/:code get": true,
  "/o/:code get": true,
  "/o/:code post": true,
  "/links get": true,
  "/links/:domain/:short_code get": true,
  "/livez get": true,
  "/metrics get": true,
  "/openapi.json get": true,
  "/people get": true,
  "/people/:id get": true,
  "/readyz get": true,
  "/runs get": true,
  "/runs/:run_id get": true,
  "/runs/dry/:run_id get": true,
  "/session post": true,
  "/session/end post": true,
  "/setup get": true,
  "/social/auth get": true,
  "/social/callback get": true,
  "/social/health get": true,
  "/social/me get": true,
  "/social/account get": true,
  "/social/account/unlink post": true,
  "/social/recipients get": true,
  "/social/recipients post": true,
  "/social/recipients/show get": true,
  "/social/recipients/consent post": true,
  "/social/recipients/forget post": true,
  "/social/recipients/held get": true,
  "/social/recipients/release post": true,
  "/social/recipients/retry post": true,
  "/social/recipients/suppress post": true,
  "/social/lookup post": true,
  "/social/settle post": true,
  "/social/run post": true,
  "/social/run/stop post": true,
  "/social/results get": true,
  "/social/suppressions get": true,
  "/social/suppressions post": true,
  "/social/quota get": true,
  "/social/runs get": true,
  "/social/stats get": true,
  "/results get": true,
};

test("every operation of the app has typed responses and a typed body", () => {
  const registered = describeEndpoints().filter(({ apiOperationId }) => apiOperationId === undefined);
  const names = registered.map(({ method, path }) => `${path === "/" ? "" : path} ${method.toLowerCase()}`);
  expect(Object.keys(OPERATIONS).toSorted()).toEqual(names.toSorted());
  const isAllTyped: [Exclude<Operations<Routes, boolean>, Typed>] extends [never] ? true : false = true;
  expect(isAllTyped).toBeTrue();
});

describe("a client of the app's own type, at a running service", () => {
  let world: Installation;
  let service: Running;
  let client: ReturnType<typeof treaty<App>>;

  beforeAll(async () => {
    world = await openInstallation();
    service = await world.serve();
    client = treaty<App>(service.url, { headers: { authorization: `Bearer ${TOKEN}` } });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test("records a click", async () => {
    const { data, status } = await client.api.tracking.event.post(CLICK);
    const id: string | undefined = data?.id;
    expect([status, id]).toEqual([202, expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  });

  test("reads the stats", async () => {
    const { data } = await client.social.stats.get();
    const sent: number | undefined = data?.sent;
    expect(sent).toBe(0);
  });

  test("receives the problem not-authorized for a run without an account", async () => {
    const { error } = await client.social.run.post({ dry_run: true });
    expect(error?.status).toBe(401 as never);
    expect(error?.value).toMatchObject({ type: "urn:reachlog:problem:not-authorized" });
  });
});

test("a call that the service does not accept does not compile", () => {
  const calls = (client: ReturnType<typeof treaty<App>>) => [
    // @ts-expect-error: no such path
    () => client.api.nothing.get(),
    // @ts-expect-error: no such method
    () => client.api.notify.get(),
    // @ts-expect-error: a member is missing
    () => client.api.tracking.event.post({ event: "click" }),
    // @ts-expect-error: none of the channels
    () => client.api.deliveries.resume.post({ channel: "fax" }),
  ];
  expect(calls).toBeFunction();
});
