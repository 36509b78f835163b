import { isIP } from "node:net";
import { commaList, shown } from "./environment.ts";
import type { Report } from "./error.ts";

export function readTrustedProxies(raw: string | undefined, report: Report): string[] {
  const proxies = commaList(raw);
  for (const entry of proxies.filter((proxy) => !isAddressOrNetwork(proxy))) {
    const wanted = "IP addresses or networks such as 127.0.0.1 or 10.0.0.0/8, separated by commas";
    report.fault("TRUSTED_PROXIES", `${shown(entry)} is no address`, wanted);
  }
  return proxies;
}

function isAddressOrNetwork(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}
