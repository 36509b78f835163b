import { readFileSync } from "node:fs";
import { checkServerIdentity } from "node:tls";
import type { Options } from "postgres";
import { StoreUnusable } from "../errors.ts";

/** How the driver reaches one server. */
export type Server = Required<Pick<Options<Record<string, never>>, "ssl">> & {
  readonly host: string;
  readonly port: number;
};

export interface Address {
  /** Of user, password, database and what else is the same for all. */
  readonly href: string;
  readonly servers: readonly Server[];
}

const PORT = 5_432;

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|)$/;

/**
 * Throws {@link StoreUnusable} for an address over a network whose server is not verified: `require` encrypts, but to
 * whomever answers. `disable` is somebody's clear decision, say inside of one machine's containers.
 */
export function addressOf(url: string): Address {
  const [first, ...others] = urlsOf(url) ?? [];
  // Without the URL: it holds a password.
  if (first === undefined) throw new StoreUnusable("the URL of the database cannot be read");
  const mode = first.searchParams.get("sslmode");
  const certificate = first.searchParams.get("sslrootcert");
  const isFile = certificate !== null && certificate !== "system";
  const authority = mode === "verify-full" && isFile ? { ca: readAuthority(certificate) } : {};
  const servers = [first, ...others].map(({ hostname, port }): Server => {
    const host = (hostname || "localhost").replace(/^\[(.*)\]$/, "$1");
    const at = { host, port: Number(port) || PORT };
    // The driver tells TLS no name for one that is named by its address: on Deno its certificate would have to be that
    // of `localhost`.
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
 * The URL of each server that a URL names: `postgres://a:5433,b/log` names two. Undefined for one that cannot be read.
 */
export function urlsOf(url: string): readonly URL[] | undefined {
  const [, before = "", hosts = "", after = ""] = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is.exec(url) ?? [];
  const names = hosts.split(",");
  // A comma too many does not mean this machine.
  if (names.length > 1 && names.includes("")) return undefined;
  const urls = names.map((name) => URL.parse(before + name + after)).filter((each) => each !== null);
  return urls.length === names.length ? urls : undefined;
}

/** Throws {@link StoreUnusable}: a wrong path is no server that is away. */
function readAuthority(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new StoreUnusable(`sslrootcert=${file} cannot be read: ${(error as Error).message}`);
  }
}
