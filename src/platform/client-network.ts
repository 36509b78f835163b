import { isIPv6 } from "node:net";

/** The part of an IPv6 address that a provider gives to one customer, who has all addresses in it: 64 bits. */
const NETWORK_GROUPS = 4;

const GROUPS = 8;

/**
 * What stands for one caller where addresses are counted: an IPv4 address, or the network of an IPv6 address, since
 * whoever has one has 2^64 of them.
 */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const groups = groupsOf(address.replace(/%.*$/, ""));
  return `${groups.slice(0, NETWORK_GROUPS).join(":")}::/64`;
}

/** The groups of 16 bits, with those that `::` leaves out. */
function groupsOf(address: string): string[] {
  const [before = "", after] = address.split("::", 2);
  const head = before === "" ? [] : before.split(":");
  const tail = after === undefined || after === "" ? [] : after.split(":");
  const missing = Array.from({ length: Math.max(0, GROUPS - head.length - tail.length) }, () => "0");
  return [...head, ...missing, ...tail].map((group) => group.toLowerCase().replace(/^0+(?=.)/, ""));
}
