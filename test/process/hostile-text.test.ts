// These tests start the service or commands as processes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { escapeControls } from "../../src/platform/escape-control-characters.ts";
import { writeHostileLog } from "./hostile/write-hostile-log.ts";
import { badLines, FORGED, HOSTILE, STEERING } from "./hostile/texts.ts";
import { oddIn } from "../harness/unexpected-html.ts";
import { BEARER, openInstallation, TOKEN, type ListeningService, type Installation, stop } from "../harness/process.ts";

const LINES = [
  "recipients list",
  "recipients list --json",
  "recipients show 1003",
  "recipients show 1003 --json",
  "recipients suppress 1003",
  "suppressions export",
  "outreach preview",
  "outreach preview 1004 --json",
  "account show",
  "account show --json",
  "clicks",
  "clicks --json",
  "results",
  "results --json",
  "results --csv",
  "audit show 1003 --limit 1000",
  "audit show 1003 --json",
  "audit show go.example/7 --limit 1000",
  "audit change 5 --projection contacts",
  "audit export",
  "audit export --format csv",
  "audit export --format cloudevents",
  "audit verify",
  "deliveries list",
  "deliveries channels",
  "deliveries list --json",
  "deliveries lag",
  "replay",
  "replay --json",
  "doctor",
  "recipients forget 1005",
];

/** Escapes control characters in the way in which the program escapes all that it writes to stdout and stderr. */
const written = escapeControls;

describe("hostile texts", () => {
  let world: Installation;
  beforeAll(async () => {
    world = await openInstallation();
    for (const network of [world.sandbox.slack, world.sandbox.telegram]) network.limit = 1_000;
    await writeHostileLog(world);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test.each(LINES)("neither control the terminal nor forge a line of output: %s", async (line) => {
    const { out, err } = await world.command(...line.split(" "));
    expect(out + err).not.toBe("");
    expect(badLines(written(out + err))).toEqual([]);
  });

  // These commands print control characters: JSON keeps those of a text, and an error message repeats an argument. Only
  // the way in which the program writes its output makes them harmless.
  test("do not control the terminal of a process", async () => {
    for (const args of [["recipients", "list", "--json"], ["audit", "export"], [Object.values(HOSTILE).join(" ")]]) {
      const { out, err } = await world.execute(...args);
      expect(out + err).not.toBe("");
      expect(badLines(out + err)).toEqual([]);
    }
  });

  test("are shown by audit show and audit export", async () => {
    const { out } = await world.command("audit", "show", "1003", "--limit", "1000");
    expect(out).toContain("evil.example");
    expect((await world.command("audit", "export")).out).toContain(FORGED);
  });

  test.each(Object.entries(HOSTILE).filter(([, text]) => /\n/.test(text) || STEERING.test(text)))(
    "do not control the terminal as an argument that %s",
    async (_aim, text) => {
      const lines = [[text], ["recipients", "show", text], ["audit", "show", text], ["stats", `--${text}`]];
      for (const { out, err } of await Promise.all(lines.map((args) => world.command(...args)))) {
        expect(out + err).not.toBe("");
        expect(badLines(written(out + err))).toEqual([]);
      }
    },
  );

  test("do not control the terminal in audit tail", async () => {
    for (const args of [
      ["audit", "tail", "--from", "1"],
      ["audit", "tail", "--from", "1", "--json"],
    ]) {
      const tail = world.start(args);
      let out = "";
      for await (const chunk of tail.stdout.pipeThrough(new TextDecoderStream())) {
        out += chunk;
        // Stops following the log once the command has written its last event: the log ends with one ChannelSuspended
        // for each hostile text.
        if (out.split("ChannelSuspended").length > Object.keys(HOSTILE).length) break;
      }
      tail.kill("SIGKILL");
      await tail.exited;
      expect(badLines(out)).toEqual([]);
    }
  });

  describe("in an export", () => {
    /**
     * Splits the exported CSV at each character at which spreadsheets split a file into cells: a comma, a semicolon or
     * a tab.
     */
    test.each([",", ";", "\t"])("form no formula if a spreadsheet splits CSV at %j", async (delimiter) => {
      const { out } = await world.command("audit", "export", "--format", "csv");
      const lenient = { delimiter, relax_quotes: true, relax_column_count: true, record_delimiter: "\r\n" };
      const cells = parse(out, lenient).flat();
      expect(cells.length).toBeGreaterThan(Object.keys(HOSTILE).length);
      expect(cells.filter((cell) => /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(cell))).toEqual([]);
    });

    test("are imported again without a fault", async () => {
      const file = join(world.directory, "export.jsonl");
      await world.command("audit", "export", "--out", file);
      expect(badLines(readFileSync(file, "utf8"))).toEqual([]);
      const target = { DATABASE_URL: `sqlite:${join(world.directory, "imported.sqlite")}` };
      expect(await world.commandWith(target, "audit", "import", file)).toMatchObject({ code: 0, err: "" });
    });
  });

  describe("in a running service", () => {
    let service: ListeningService;
    beforeAll(async () => {
      service = await world.host();
    });

    test("are escaped on the console", async () => {
      const form = new URLSearchParams({ token: TOKEN });
      const signedIn = await service.get("/session", { method: "POST", body: form });
      const cookie = (signedIn.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
      let all = "";
      for (const path of ["/", "/people", "/links", "/deliveries", "/results", "/activity"]) {
        const answer = await service.get(path, { headers: { cookie } });
        const page = await answer.text();
        expect(answer.status).toBe(200);
        expect(await oddIn(page)).toEqual([]);
        expect(page).not.toMatch(STEERING);
        all += page;
      }
      expect(all).toContain("&lt;script>alert(1)&lt;/script>");
    });

    test.each(Object.entries(HOSTILE))("are accepted or refused in requests: a text that %s", async (_, text) => {
      const header = encodeURIComponent(text);
      const headers = { ...BEARER, "x-request-id": header, "user-agent": header, traceparent: header };
      const click = { event: text, domain: text, short_code: text, original_url: "https://shop.example/" };
      const answers = [
        await service.post("/api/tracking/event", { ...click, user_agent: text, [text]: 1 }, headers),
        await service.post("/api/tracking/event", { ...click, user_agent: text }, headers),
        await service.post("/api/notify", { message: text, service: text }, headers),
        await service.post("/api/messaging", { text }, headers),
        await service.get(`/${encodeURIComponent(text)}`, { headers }),
      ];
      for (const answer of answers) {
        expect(answer.status).toBeOneOf([200, 202, 400, 404, 422, 502]);
        await answer.text();
      }
    });

    test("leave the service's output one JSON object per line", async () => {
      await stop(service);
      const lines = service.log().trimEnd().split("\n");
      expect(lines.length).toBeGreaterThan(1);
      for (const line of lines) expect(JSON.parse(line)).toMatchObject({ level: expect.any(String) });
      expect(badLines(service.log())).toEqual([]);
    });
  });
});
