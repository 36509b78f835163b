// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { openService } from "../harness/in-process/service.ts";

/**
 * Client secret that contains escapes: a server that decodes Basic credentials as a form reads a different secret than
 * one that does not.
 */
const CLIENT_SECRET = "a%2Bb+c";

test.each(["raw", "form"] as const)(
  "a secret with %% and + works only with the server's encoding of Basic: %s",
  async (basic) => {
    await using world = await openService({ xApp: { basic, clientSecret: CLIENT_SECRET } });
    for (const setting of ["raw", "form"]) {
      const service = await world.deploy({ X_BASIC_ENCODING: setting });
      const browser = service.browser();
      const answer = await browser.follow(await browser.agree(await browser.begin()));
      if (setting === basic) {
        expect([answer.status, await service.linked()]).toEqual([303, "acme_team"]);
        continue;
      }
      expect([answer.status, await answer.json(), await service.linked()]).toEqual([
        502,
        expect.objectContaining({
          detail: "invalid_client: check X_CLIENT_ID and X_CLIENT_SECRET, or X_BASIC_ENCODING",
        }),
        undefined,
      ]);
    }
  },
);
