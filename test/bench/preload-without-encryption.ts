import { plugin } from "bun";

/**
 * Code that this preload replaces, so that the benchmarked service writes and reads without encryption. The difference
 * in time is the cost of encryption.
 */
const ENCRYPTING = "encryptingCodec(keyring)";

plugin({
  name: "without-encryption",
  setup(build) {
    build.onLoad({ filter: /src\/privacy\/encrypted-log\.ts$/ }, async ({ path }) => {
      const source = await Bun.file(path).text();
      const contents = source.replace(ENCRYPTING, "encryptingCodec(undefined as never)");
      if (contents === source) throw new Error(`${path} encrypts in other words than ${ENCRYPTING}`);
      return { contents, loader: "ts" };
    });
  },
});
