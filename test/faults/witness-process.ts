import { join } from "node:path";
import { kill, until, type Installation, type Running } from "../harness/process.ts";

/** The log's public key, by which auditors and witnesses identify it. Throws if there is no log. */
export async function readPublicKey(world: Installation): Promise<string> {
  const { code, out, err } = await world.execute("audit", "head", "--public-key");
  if (code !== 0) throw new Error(err);
  return out.trim();
}

/** Opens a witness in a separate process, which the test can kill and restart at the same address. */
export async function openWitness(world: Installation, key: string) {
  const said: string[] = [];
  const start = (port: number): Running["process"] => {
    const folder = join(world.directory, "witness");
    const child = world.start(["witness", "serve", "--data", folder, "--log-key", key, "--port", `${port}`]);
    void (async () => {
      let text = "";
      for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
        const lines = (text + chunk).split("\n");
        text = lines.pop() ?? "";
        said.push(...lines);
      }
    })();
    return child;
  };
  let child = start(0);
  const readSettings = async () =>
    said.flatMap((line) => [/^(WITNESS_\w+)=(.+)$/.exec(line)?.slice(1) ?? []].filter(({ length }) => length > 0));
  const settings = Object.fromEntries(await until(readSettings, ({ length }) => length === 2)) as Record<
    string,
    string
  >;
  return {
    settings,
    said,
    async restart(): Promise<void> {
      await kill({ process: child });
      child = start(Number(new URL(settings["WITNESS_URL"] ?? "").port));
    },
  };
}
