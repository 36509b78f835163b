import { randomInt } from "node:crypto";
import { createServer, type AddressInfo } from "node:net";

/** Listens at a port of the host, 0 for any, and stops. Returns the port; rejects if nothing can listen there. */
function probe(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(port, host, () => {
      const { port: bound } = server.address() as AddressInfo;
      server.close(() => resolve(bound));
    });
  });
}

/** True if no other program listens at this port of the host. */
export function isPortFree(host: string, port: number): Promise<boolean> {
  return probe(host, port).then(
    () => true,
    () => false,
  );
}

/**
 * Ports to choose from, the last one exclusive. They are below those that Linux gives to outgoing connections and to
 * listeners without a port, so that no other program is given the port before it is used.
 */
const [FIRST_PORT, END_PORT] = [20_000, 32_768];

const TRIES_MAX = 20;

/** Returns a TCP port of `host` that is free at present. Rejects if nothing can listen at that host. */
export async function findFreePort(host: string): Promise<number> {
  for (let tried = 0; tried < TRIES_MAX; tried++) {
    const port = randomInt(FIRST_PORT, END_PORT);
    if (await isPortFree(host, port)) return port;
  }
  return probe(host, 0);
}
