import { test } from "bun:test";
import * as fc from "fast-check";
import { writeFileSync, appendFileSync } from "node:fs";
import { histories, live } from "./model/history.ts";
test("find", async () => {
  for (const [n, h] of fc.sample(histories, { numRuns: 300, seed: Number(process.env.SEED ?? 1) }).entries()) {
    writeFileSync("/tmp/rl/review5/current.json", JSON.stringify(h));
    const t = performance.now();
    let timer: any;
    const r = await Promise.race([live(h).then(() => "ok", (e) => "FAIL " + String(e.message).slice(0, 300)), new Promise((res) => { timer = setTimeout(() => res("HANG"), 10_000); })]);
    clearTimeout(timer);
    if (r !== "ok" || performance.now() - t > 3000) { appendFileSync("/tmp/rl/review5/found.jsonl", JSON.stringify({ n, r, ms: performance.now() - t, h }) + "\n"); console.log(n, r, Math.round(performance.now() - t)); if (r === "HANG") process.exit(1); }
  }
}, 500_000);
