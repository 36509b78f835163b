import { isIP, isIPv4 } from "node:net";
import { FormatRegistry, Type } from "@sinclair/typebox";
import ipaddr from "ipaddr.js";

FormatRegistry.Set("ip-address", (value) => isIP(value) !== 0);

export const ipAddress = Type.String({
  format: "ip-address",
  description: "An IPv4 or IPv6 address.",
  examples: ["203.0.113.7"],
});

/** Number of bits of the IPv6 network that a provider gives to one customer, who has all addresses in it. */
const NETWORK_BITS = 64;

/** Returns an IP address in its canonical spelling. An IPv4-mapped IPv6 address becomes the IPv4 address. */
export function canonicalAddress(address: string): string {
  return isIPv4(address) || isIP(address) === 0 ? address : ipaddr.process(address).toString();
}

/**
 * Returns the network whose addresses count as one caller: an IPv4 address alone, or the /64 network of an IPv6
 * address, because its holder has all 2^64 addresses.
 */
export function toNetwork(address: string): string {
  const canonical = canonicalAddress(address);
  if (isIP(canonical) !== 6) return canonical;
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${canonical}/${NETWORK_BITS}`).toString()}/${NETWORK_BITS}`;
}
