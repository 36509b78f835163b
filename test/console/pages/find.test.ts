// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { makeEvent } from "../../../events/event-types-and-codec.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { ask } from "../../harness/in-process/app.ts";
import { makeId } from "../../../src/platform/clock-ids-and-timers.ts";
import { oddIn } from "../../harness/unexpected-html.ts";
import { click, openConsole, pageAt, person, textsAt } from "../open-console.ts";

const RUN = makeId();

async function openSome() {
  const harness = await openConsole();
  const recipient = { id: "2", username: "ada" };
  await harness.append("outreach", { type: "RunStarted", data: { run_id: RUN, dry_run: false } });
  await harness.append("link-go.example/a/b", click("a/b"));
  const imported = { basis: "none", fields: {}, source: "list" } as const;
  await harness.append("outreach", { type: "RecipientAdded", data: { recipient, name: "Ada L", ...imported } });
  const resultsOf = async (q: string) =>
    (await textsAt(await pageAt(harness, `/find?${new URLSearchParams({ q, suggest: "" })}`), "main li")).map(
      ({ text, links }) => [text, ...links],
    );
  /**
   * Searches for `q` and returns the path that the browser is redirected to; null if the search shows its results
   * instead.
   */
  const pageOf = async (q: string, asOf = ""): Promise<string | null> => {
    await harness.projector.until((await harness.store.head()).position);
    const answer = await ask(harness.app, `/find?${new URLSearchParams({ q })}${asOf}`);
    expect(answer.status).toBe(answer.headers.has("location") ? 303 : 200);
    return answer.headers.get("location");
  };
  return { harness, resultsOf, pageOf };
}

test("a unique match redirects to its page; several matches are listed", async () => {
  const { harness, resultsOf, pageOf } = await openSome();
  for (const wanted of ["@ADA", "ada", "Why did @ada get a message?", "why did @Ada, of all people"]) {
    expect([wanted, await pageOf(wanted)]).toEqual([wanted, "/people/2"]);
  }
  // "2" may be the id of a recipient or a position in the log, so the search shows both.
  expect(await pageOf("2")).toBeNull();
  expect(await resultsOf("2")).toEqual([
    // The result has a button that suppresses the recipient at once. Without script, it leads to the confirmation on
    // the recipient's page.
    [
      "@ada (Ada L)not contacted yetSuppress @ada…No run ever writes to them again",
      "/people/2",
      expect.stringMatching(/^\/people\/2\?confirm=/),
    ],
    ["Position 2", "/activity/2"],
  ]);
  expect(await pageOf("3")).toBe("/activity/3");
  for (const link of ["go.example/a/b", "https://go.example/a/b"]) {
    expect(await pageOf(link)).toBe("/links/go.example/a%2Fb");
  }
  expect(await pageOf(RUN.toUpperCase())).toBe(`/runs/${RUN}`);
  const id = makeId();
  await harness.store.append("link-go.example/a", [
    makeEvent("LinkClicked", id, (click("a") as NewEvent<"LinkClicked">).data, {}),
  ]);
  expect(await pageOf(id)).toBe("/activity/4");
});

test("a link that an operator added is found before its first click, and its page says that there is none", async () => {
  const { harness, resultsOf, pageOf } = await openSome();
  const added = { domain: "go.example", code: "shop330", target: "https://shop.example/" };
  await harness.append("links", { type: "LinkAdded", data: added });
  expect(await resultsOf("shop33")).toEqual([["go.example/shop330", "/links/go.example/shop330"]]);
  expect(await pageOf("https://go.example/shop330")).toBe("/links/go.example/shop330");
  expect(await pageAt(harness, "/links/go.example/shop330")).toContain("This link has no clicks yet.");
});

test("a campaign is found by a part of its name", async () => {
  const { harness, resultsOf } = await openSome();
  const created = (name: string): NewEvent => ({ type: "CampaignCreated", data: { name, text: "Hi", audience: {} } });
  await harness.append("outreach", created("spring"), created("spring-2"));
  expect(await resultsOf("pring")).toEqual([
    ["spring", "/campaigns/spring"],
    ["spring-2", "/campaigns/spring-2"],
  ]);
  expect(await resultsOf("ring-2")).toEqual([["spring-2", "/campaigns/spring-2"]]);
});

test.each(["eve", "Why did @eve get a message?", "mail@ada", "go.example/c", "4", "0", makeId(), "<b>\u202e"])(
  "%j matches nothing, and the page says so",
  async (wanted) => {
    const { harness, resultsOf } = await openSome();
    expect(await resultsOf(wanted)).toEqual([]);
    const page = await pageAt(harness, `/find?${new URLSearchParams({ q: wanted })}`);
    expect(page).toContain("The log has nothing with that name");
    expect(await oddIn(page)).toEqual([]);
    expect(page).not.toContain("\u202e");
  },
);

test("every page has the search form, and searches nothing before it is sent", async () => {
  const { harness } = await openSome();
  for (const path of ["/activity", "/find"]) {
    const page = await pageAt(harness, path);
    expect(page).toContain('action="/find"');
    expect(page).not.toContain("nothing with that name");
  }
});

test("a search as of an earlier moment finds nothing later", async () => {
  const { harness, pageOf } = await openSome();
  await harness.append("outreach", person("later"));
  expect(await pageAt(harness, "/find?q=4&as_of=3")).toContain("nothing with that name");
  expect(await pageAt(harness, "/find?q=later&as_of=3")).toContain("nothing with that name");
  expect(await pageOf("later")).toBe("/people/@later");
  expect(await pageOf("ada", "&as_of=3")).toBe("/people/2?as_of=3");
});

test("names are found by a part, at most four of a kind while an operator types", async () => {
  const { harness, resultsOf } = await openSome();
  for (const name of ["tessa", "yuki_tests", "ines_writes", "terry", "tess_two", "noor_runs"]) {
    await harness.append("outreach", person(name, "opt_in", name === "noor_runs" ? "Tess" : undefined));
  }
  await harness.append("link-go.example/winter", click("winter"));
  const found = await resultsOf("te");
  expect(found.map(([text]) => text)).toEqual([
    "@tessanot contacted yet",
    "@terrynot contacted yet",
    "@tess_twonot contacted yet",
    "@noor_runs (Tess)not contacted yet",
    "go.example/winter",
  ]);
  const page = await pageAt(harness, "/find?q=te&suggest=");
  expect(page).toContain('href="/people?search=te">4 of 6</a>');
  expect(page).toContain("@<mark>te</mark>ssa");
  expect((await textsAt(await pageAt(harness, "/find?q=te"), "main li")).length).toBe(7);
  expect(await resultsOf("run 1")).toEqual([["Run 1", `/runs/${RUN}`]]);
});
