import { BlockList, isIP, isIPv6 } from "node:net";
import { canonicalAddress } from "../../platform/ip-address.ts";
import type { Server } from "../server/node-server.ts";

/** The HTTP server, which knows the remote address of each request's connection. */
interface AddressSource {
  readonly requestIP: Server["requestIP"];
}

export type ClientAddress = (request: Request, server: AddressSource | null) => string;

const LOOPBACK = "127.0.0.1";

/** Maximum number of entries of `X-Forwarded-For` that are read, from the right. A longer list is forged. */
const HOPS_MAX = 16;

/**
 * Creates the function that finds a client's address: that of the connection or, behind trusted proxies, the last one
 * in `X-Forwarded-For` that is no trusted proxy. The caller may have forged all entries before it.
 */
export function createClientAddress(trustedProxies: readonly string[]): ClientAddress {
  const trusted = createBlockList(trustedProxies);
  const isTrusted = (address: string): boolean => trusted.check(address, isIPv6(address) ? "ipv6" : "ipv4");
  return (request, server) => {
    const peer = canonicalAddress(server?.requestIP(request)?.address ?? LOOPBACK);
    if (trustedProxies.length === 0 || !isTrusted(peer)) return peer;
    const hops = (request.headers.get("x-forwarded-for") ?? "").split(",").slice(-HOPS_MAX).map(addressIn);
    let last = peer;
    for (const hop of hops.toReversed()) {
      // The entry that the trusted proxy `last` wrote is no address, so the proxy's own address counts.
      if (hop === undefined) return last;
      last = hop;
      if (!isTrusted(hop)) return hop;
    }
    return last;
  };
}

function createBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const kind = isIPv6(address) ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, kind);
    else list.addSubnet(address, Number(bits), kind);
  }
  return list;
}

/**
 * Returns the IP address in one entry of `X-Forwarded-For`, without the port that some proxies add; undefined if the
 * entry is no address.
 */
function addressIn(entry: string): string | undefined {
  const text = entry.trim();
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? text.replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1");
  return isIP(bare) === 0 ? undefined : canonicalAddress(bare);
}
