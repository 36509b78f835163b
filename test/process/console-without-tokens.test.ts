// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { openInstallation, stop } from "../harness/process.ts";

/** True if a browser may act on the page that the service serves without any login under these settings. */
async function canAct(settings: Readonly<Record<string, string>>): Promise<boolean> {
  await using world = await openInstallation();
  delete world.env["API_TOKENS"];
  const service = await world.host({ AUTH_POLICY: "spec", ...settings });
  const page = await service.get("/setup");
  expect(page.status).toBe(200);
  const text = await page.text();
  expect(await stop(service)).toBe(0);
  return text.includes('name="form_token"');
}

test("without API tokens the console has forms only if neither hosts nor proxies are configured", async () => {
  expect(await canAct({})).toBe(true);
  expect(await canAct({ ALLOWED_HOSTS: "reach.example" })).toBe(false);
  expect(await canAct({ TRUSTED_PROXIES: "127.0.0.1" })).toBe(false);
});
