// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { oddIn } from "../../harness/unexpected-html.ts";
import { openConsole, pageAt, person, textsAt } from "../open-console.ts";

async function openWithAda() {
  const harness = await openConsole();
  await harness.append("recipient-ada", person("ada"));
  return harness;
}

test("a confirmation is a dialog of the page, and its button leads to a page with the same form", async () => {
  const harness = await openWithAda();
  const page = await pageAt(harness, "/people/@ada?before=9");
  const [, href = "", id = ""] =
    /<a class="button dangerous" href="([^"]+)" data-dialog="([^"]+)"[^>]*>Forget/.exec(page) ?? [];
  expect(href).toBe(`?before=9&amp;confirm=${id}`);
  const dialog = page.slice(page.indexOf(`<dialog id="${id}"`));
  const form = dialog.slice(dialog.indexOf("<form"), dialog.indexOf("</form>"));
  expect(form.indexOf("Cancel")).toBeGreaterThan(0);
  expect(form.indexOf("Cancel")).toBeLessThan(form.indexOf("<button"));

  const alone = await pageAt(harness, `/people/@ada?before=9&confirm=${id}`);
  expect(alone).toContain("<title>Forget · reachlog</title>");
  expect((await textsAt(alone, "main h1")).map(({ text }) => text)).toEqual(["Forget @ada?"]);
  // Removes the form token, which differs on each page.
  const withoutToken = (text: string) => text.replaceAll(/name="form_token" value="[^"]+"/g, "");
  expect(withoutToken(alone)).toContain(withoutToken(form));
  expect(alone).not.toContain("<dialog");
  expect(await textsAt(alone, "form.action [data-cancel]")).toEqual([{ text: "Cancel", links: [] }]);
  expect(await oddIn(alone)).toEqual([]);
});

test("a page without the confirmation that its address asks for is shown whole", async () => {
  const page = await pageAt(await openWithAda(), "/people/@ada?confirm=confirm-0123456789ab");
  expect(page).toContain("<title>@ada");
  expect(page).toContain("<dialog");
});
