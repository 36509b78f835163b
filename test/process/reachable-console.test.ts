// On the process harness.
import { expect, test } from "bun:test";
import { openInstallation, stop } from "../harness/process.ts";

/** True if a page without a token lets a browser act. */
async function canAct(settings: Readonly<Record<string, string>>): Promise<boolean> {
  await using world = await openInstallation();
  delete world.env["API_TOKENS"];
  const service = await world.serve({ AUTH_POLICY: "spec", ...settings });
  const page = await service.get("/people");
  expect(page.status).toBe(200);
  const text = await page.text();
  expect(await stop(service)).toBe(0);
  return text.includes('name="form_token"');
}

test("without a token browsers act on a service of this machine only, and not on one that a name or a proxy leads to", async () => {
  expect(await canAct({})).toBe(true);
  expect(await canAct({ ALLOWED_HOSTS: "reach.example" })).toBe(false);
  expect(await canAct({ TRUSTED_PROXIES: "127.0.0.1" })).toBe(false);
});
