import { plugin } from "bun";

/** Preloaded, the service writes and reads everything openly: what it costs more with sealing is the sealing. */
const SEALING = "encryptingCodec(keyring)";

plugin({
  name: "without-sealing",
  setup(build) {
    build.onLoad({ filter: /src\/privacy\/encrypted-log\.ts$/ }, async ({ path }) => {
      const source = await Bun.file(path).text();
      const contents = source.replace(SEALING, "encryptingCodec(undefined as never)");
      if (contents === source) throw new Error(`${path} seals in other words than ${SEALING}`);
      return { contents, loader: "ts" };
    });
  },
});
