import { readFileSync } from "node:fs";
import { checkServerIdentity } from "node:tls";
import type { Options } from "postgres";
import { StoreUnusable } from "../errors.ts";

/** Options of the database driver for one server. */
export interface Server {
  readonly host: string;
  readonly port: number;
  readonly ssl: NonNullable<Options<Record<string, never>>["ssl"]>;
}

export interface Address {
  /** URL with the parts that all servers share: user, password, database and options. */
  readonly href: string;
  readonly servers: readonly Server[];
}

const PORT = 5_432;

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|)$/;

/**
 * Parses a database's URL. Throws {@link StoreUnusable} for a network address without verification of the server:
 * `require` encrypts, but to any server that answers. `disable` is an explicit choice, say between containers of one
 * machine.
 */
export function addressOf(url: string): Address {
  const [first, ...others] = urlsOf(url) ?? [];
  // The message leaves out the URL, which holds a password.
  if (first === undefined) throw new StoreUnusable("the URL of the database cannot be read");
  const mode = first.searchParams.get("sslmode");
  const certificate = first.searchParams.get("sslrootcert");
  const isFile = certificate !== null && certificate !== "system";
  const authority = mode === "verify-full" && isFile ? { ca: readAuthority(certificate) } : {};
  const servers = [first, ...others].map(({ hostname, port }): Server => {
    const host = (hostname || "localhost").replace(/^\[(.*)\]$/, "$1");
    const at = { host, port: Number(port) || PORT };
    // Compares the server's certificate with the host in the URL. The driver passes no name to TLS if the host is an IP
    // address, and Deno would then expect a certificate for `localhost`.
    const checkIdentity: typeof checkServerIdentity = (_name, peer) => checkServerIdentity(host, peer);
    if (mode === "verify-full") return { ...at, ssl: { checkServerIdentity: checkIdentity, ...authority } };
    if (mode === "disable" || LOOPBACK.test(hostname)) return { ...at, ssl: false };
    throw new StoreUnusable(
      "the database is reached over a network: its URL needs sslmode=verify-full, or sslmode=disable where nobody listens",
    );
  });
  first.searchParams.delete("sslmode");
  first.searchParams.delete("sslrootcert");
  return { href: first.href, servers };
}

/**
 * Returns the URL of each server that a URL names: `postgres://a:5433,b/log` names two. Undefined if it cannot be read.
 */
export function urlsOf(url: string): readonly URL[] | undefined {
  const [, before = "", hosts = "", after = ""] = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is.exec(url) ?? [];
  const names = hosts.split(",");
  // A URL with several host names of which one is empty is refused: the driver would take the empty name for this
  // machine, but a stray comma does not mean that.
  if (names.length > 1 && names.includes("")) return undefined;
  const urls = names.map((name) => URL.parse(before + name + after)).filter((each) => each !== null);
  return urls.length === names.length ? urls : undefined;
}

/**
 * Reads the file of `sslrootcert`. Throws {@link StoreUnusable} if it cannot, because retrying does not help with a
 * wrong path.
 */
function readAuthority(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new StoreUnusable(`sslrootcert=${file} cannot be read: ${(error as Error).message}`);
  }
}
