import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { HttpResponse } from "./answer.ts";

/** Smaller texts gain less than their headers cost. */
const COMPRESSED_BYTES_MIN = 1_024;

/** For texts that are compressed once, and for those of one request: the first takes 100 ms for a file, this one 2 ms. */
const BEST = { br: 11, gzip: 9 } as const;
const FAST = { br: 4, gzip: 4 } as const;

type Encoding = keyof typeof BEST;

const [toBrotli, toGzip] = [promisify(brotliCompress), promisify(gzip)];

/** The best encoding that an `Accept-Encoding` names (RFC 9110, section 12.5.3); undefined: the text goes as it is. */
function chooseEncoding(accepted: string): Encoding | undefined {
  const names = accepted.split(",").flatMap((part) => {
    const [name = "", ...parameters] = part.toLowerCase().split(";");
    const isRefused = parameters.some((one) => /^\s*q\s*=\s*0(?:\.0*)?\s*$/.test(one));
    return isRefused ? [] : [name.trim()];
  });
  return (["br", "gzip"] as const).find((encoding) => names.includes(encoding));
}

async function pack(text: string, encoding: Encoding, quality: typeof BEST | typeof FAST): Promise<Uint8Array> {
  if (encoding === "gzip") return toGzip(text, { level: quality.gzip });
  return toBrotli(text, { params: { [constants.BROTLI_PARAM_QUALITY]: quality.br } });
}

/**
 * The answer as its reader accepts it. What is compressed must not hold a secret beside what a caller chose: its length
 * would tell how far the two agree (BREACH).
 */
export function compressed<Status extends number>(
  answer: HttpResponse<Status>,
  request: Pick<Request, "headers">,
): Promise<HttpResponse<Status>> {
  return toEncoded(answer, request, (encoding) => pack(answer.body, encoding, FAST));
}

/** The same of an answer that is always the same: each encoding is made once. */
export function createCompressed<Status extends number>(answer: HttpResponse<Status>) {
  const made = new Map<Encoding, Promise<Uint8Array>>();
  return (request: Pick<Request, "headers">): Promise<HttpResponse<Status>> =>
    toEncoded(answer, request, (encoding) => {
      const packed = made.get(encoding) ?? pack(answer.body, encoding, BEST);
      made.set(encoding, packed);
      return packed;
    });
}

async function toEncoded<Status extends number>(
  answer: HttpResponse<Status>,
  { headers }: Pick<Request, "headers">,
  packed: (encoding: Encoding) => Promise<Uint8Array>,
): Promise<HttpResponse<Status>> {
  if (answer.body.length < COMPRESSED_BYTES_MIN) return answer;
  const varying = { ...answer, headers: { ...answer.headers, vary: "Accept-Encoding" } };
  const encoding = chooseEncoding(headers.get("accept-encoding") ?? "");
  if (encoding === undefined) return varying;
  return {
    ...varying,
    headers: { ...varying.headers, "content-encoding": encoding },
    bytes: new Uint8Array(await packed(encoding)),
  };
}
