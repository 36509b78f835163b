import { plugin } from "bun";

/**
 * Preload of the complete service when it is compared with a service without one part. Removes nothing, so that the
 * preload itself costs both the same.
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
