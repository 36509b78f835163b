import { plugin } from "bun";

/**
 * Preload of the complete service, for the comparison with a service without one part. It removes nothing, so that both
 * services have the cost of a preload.
 */
plugin({
  name: "unchanged",
  setup(build) {
    build.onLoad({ filter: /src\/log\/signed-heads\.ts$/ }, async ({ path }) => ({
      contents: await Bun.file(path).text(),
      loader: "ts",
    }));
  },
});
