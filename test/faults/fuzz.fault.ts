import { expect, test } from "bun:test";
import { BARE, TROUBLED, WHOLE } from "../fuzz/deployments.ts";
import { fuzz } from "../fuzz/fuzz.ts";
import { expectSound } from "../fuzz/sound.ts";

const seed = Number(process.env["FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
console.log(`fuzz: FUZZ_SEED=${seed} makes the same requests again`);

test.each([
  [20_000, WHOLE],
  [4_000, BARE],
  [4_000, TROUBLED],
])(
  "%i requests made from the service's own OpenAPI document are answered as it says",
  async (requests, deployment) => {
    const report = await fuzz({ requests, seed, deployment });
    expectSound(deployment, report);
    expect(report.requests).toBeGreaterThanOrEqual(requests);
  },
  240_000,
);
