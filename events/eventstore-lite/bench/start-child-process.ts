interface Options {
  readonly cwd?: string;
  readonly env?: Record<string, string | undefined>;
}

/** Starts a process, and kills it when this one exits. */
export function startChild(
  command: readonly string[],
  options: Options = {},
): Bun.Subprocess<"ignore", "pipe", "pipe"> {
  const child = Bun.spawn([...command], { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const kill = (): void => child.kill();
  process.once("exit", kill);
  void child.exited.then(() => process.off("exit", kill));
  return child;
}

/** Returns the output of a program. Throws with its last lines if it fails. */
export async function outputOf(command: readonly string[], options: Options = {}): Promise<string> {
  const child = startChild(command, options);
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code === 0) return out;
  const last = (err + out).trim().split("\n").slice(-5).join(" | ");
  throw new Error(`${command.slice(0, 3).join(" ")} ended with ${code}: ${last}`);
}
