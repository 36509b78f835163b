// These tests call the code directly.
import { expect, test } from "bun:test";
import { loadConfig } from "../../src/config/config.ts";
import { isPortFree, reservePort } from "../../src/platform/free-port.ts";
import { createLogger } from "../../src/platform/logger.ts";
import { openToServe } from "../../src/service/open-to-serve.ts";
import { serve } from "../../src/service/service.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

const HOST = "127.0.0.1";
const silent = createLogger("error", () => {}, Date.now);

test("a reserved port is free again once its reservation is disposed, also twice", async () => {
  const reservation = await reservePort(HOST);
  expect(await isPortFree(HOST, reservation.port)).toBe(false);
  await reservation[Symbol.asyncDispose]();
  await reservation[Symbol.asyncDispose]();
  expect(await isPortFree(HOST, reservation.port)).toBe(true);
});

test("a reserved port closes a connection instead of keeping its client waiting", async () => {
  await using reservation = await reservePort(HOST);
  const answer = fetch(`http://${HOST}:${reservation.port}`);
  expect(await answer.catch((fault: unknown) => fault)).toBeInstanceOf(Error);
});

test("a service without a given port keeps its port from the start until it listens", async () => {
  using folder = temporaryFolder();
  const settings = { HOST, PORT: "0", DATABASE_URL: `sqlite:${folder.file("log.sqlite")}` };
  await using opened = await openToServe(
    loadConfig(settings, () => ""),
    silent,
  );
  const { port, publicUrl } = opened.config.http;
  expect(publicUrl).toBe(`http://${HOST}:${port}`);
  expect(await isPortFree(HOST, port)).toBe(false);
  await using service = await serve(opened);
  expect(service.url).toBe(publicUrl);
  expect((await fetch(`${service.url}/api/health`)).status).toBe(200);
});
