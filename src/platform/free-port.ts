import { randomInt } from "node:crypto";
import { createServer, type AddressInfo } from "node:net";

/** A TCP port that this process occupies until the reservation is disposed, so that no other program can take it. */
export interface PortReservation extends AsyncDisposable {
  readonly port: number;
}

/** Occupies a port of the host, 0 for any, and closes each connection to it. Rejects if nothing can listen there. */
function occupy(host: string, port: number): Promise<PortReservation> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy()).once("error", reject);
    server.listen(port, host, () => {
      const { port: bound } = server.address() as AddressInfo;
      // Closing a server that is closed already reports an error, which has no consequence here.
      resolve({ port: bound, [Symbol.asyncDispose]: () => new Promise((closed) => server.close(() => closed())) });
    });
  });
}

/** True if no other program listens at this port of the host. */
export async function isPortFree(host: string, port: number): Promise<boolean> {
  try {
    await using _occupied = await occupy(host, port);
    return true;
  } catch {
    return false;
  }
}

/**
 * Ports to choose from, the last one exclusive. They are below those that Linux gives to outgoing connections and to
 * listeners without a port, so that no other program is given the port before it is used.
 */
const [FIRST_PORT, END_PORT] = [20_000, 32_768];

const TRIES_MAX = 20;

/** Occupies a free TCP port of `host`. Rejects if nothing can listen at that host. */
export async function reservePort(host: string): Promise<PortReservation> {
  for (let tried = 0; tried < TRIES_MAX; tried++) {
    try {
      return await occupy(host, randomInt(FIRST_PORT, END_PORT));
    } catch {
      // Another program occupies this port, or nothing can listen at the host, which the last attempt reports.
    }
  }
  return occupy(host, 0);
}

/** Returns a TCP port of `host` that is free at present. Rejects if nothing can listen at that host. */
export async function findFreePort(host: string): Promise<number> {
  await using reservation = await reservePort(host);
  return reservation.port;
}
