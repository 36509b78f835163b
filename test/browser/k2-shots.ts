import { violationsOf } from "../harness/accessibility.ts";
import { join } from "node:path";
import { mkdirSync } from "node:fs";
import { launchBrowser } from "../harness/browser.ts";
import { startDemo } from "../harness/demo.ts";
import { temporaryFolder } from "../harness/temporary.ts";
const out = "/tmp/k2-shots";
mkdirSync(out, { recursive: true });
using files = temporaryFolder();
await using demo = await startDemo(files.path, ["--keep", files.path, "--busy"]);
const token = /^token +(\S+)/m.exec(demo.printed)?.[1] ?? "";
const send = async (path: string, body: object) => {
  const answer = await fetch(`${demo.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  console.log(path, answer.status, (await answer.text()).slice(0, 200));
};
await send("/social/campaigns/create", {
  name: "spring",
  text: "Hi {{name|there}}, the new list is out.\n---\nHello {{name|there}}, have you seen the new list?",
  source: "list",
  basis: "opt_in",
});
await send("/social/campaigns/create", {
  name: "spring-reminder",
  text: "Hi {{name|there}}, still interested?",
  messaged: "default",
  days: 5,
  gap_days: 45,
  topic: "news",
});
await send("/social/campaigns/create", { name: "over", text: "Hi" });
await send("/social/campaigns/end", { name: "over" });
const browser = await launchBrowser();
for (const scheme of ["light", "dark"] as const)
  for (const [width, height] of [
    [1440, 900],
    [390, 844],
  ] as const) {
    const page = await (
      await browser.newContext({ colorScheme: scheme, viewport: { width, height }, reducedMotion: "reduce" })
    ).newPage();
    await page.goto(demo.url);
    await page.fill("input[name=token]", token);
    await page.click("button");
    await page.waitForSelector("main[data-position]");
    for (const [name, path] of Object.entries({
      list: "/campaigns",
      one: "/campaigns/spring-reminder",
      default: "/campaigns/default",
      person: "/people/@ada_ships",
      results: "/results?by=campaign",
    })) {
      await page.goto(demo.url + path);
      await page.screenshot({ path: join(out, `${name}-${scheme}-${width}.png`), fullPage: true });
      console.log(name, scheme, width, JSON.stringify(await violationsOf(page)));
      const wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
      if (wide) console.log("WIDE", name, scheme, width);
    }
    await page.goto(demo.url + "/campaigns");
    await page.click("text=New campaign…");
    console.log("form", scheme, width, JSON.stringify(await violationsOf(page)));
    await page.screenshot({ path: join(out, `form-${scheme}-${width}.png`) });
    await page.context().close();
  }
await browser.close();
