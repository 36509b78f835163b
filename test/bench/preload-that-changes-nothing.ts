import { plugin } from "bun";

/**
 * This file is preloaded into the complete service, when it is compared with a service without one part. It removes
 * nothing, but a preload has a cost, and so both services have the same.
 */
plugin({
  name: "unchanged",
  setup(build) {
    build.onLoad({ filter: /src\/log\/sign-heads-and-prove-events\.ts$/ }, async ({ path }) => ({
      contents: await Bun.file(path).text(),
      loader: "ts",
    }));
  },
});
