import { expect, test } from "bun:test";
import { BARE, TROUBLED, WHOLE } from "../fuzz/fixed-deployments.ts";
import { fuzz } from "../fuzz/send-generated-requests-to-service.ts";
import { expectSound } from "../fuzz/expect-healthy-service-after-fuzz.ts";
import { isWhole } from "../harness/case-count.ts";

const seed = Number(process.env["FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
console.log(`fuzz: FUZZ_SEED=${seed} makes the same requests again`);

const DEPLOYMENTS = [
  { deployment: WHOLE, requests: isWhole ? 20_000 : 5_000 },
  { deployment: BARE, requests: isWhole ? 4_000 : 1_000 },
  // This deployment gets fewer requests, because in each batch of requests one waits for a network that does not
  // answer.
  { deployment: TROUBLED, requests: isWhole ? 500 : 200 },
];

for (const { deployment, requests } of DEPLOYMENTS) {
  test(`the service answers ${requests} generated requests as documented, with ${deployment.name}`, async () => {
    const report = await fuzz({ requests, seed, deployment });
    expectSound(deployment, report);
    expect(report.requests).toBeGreaterThanOrEqual(requests);
  });
}
