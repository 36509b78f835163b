import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { HttpResponse, WithHeaders } from "./http-response.ts";

/** Minimum size of a response that is compressed, in bytes. Below it, compression saves less than its headers take. */
const COMPRESSED_BYTES_MIN = 1_024;

/** Compression levels for texts that are compressed once, which takes 100 ms for a file. */
const BEST = { br: 11, gzip: 9 } as const;
/** Compression levels for texts that are made for one request, which takes 2 ms. */
const FAST = { br: 4, gzip: 4 } as const;

type Encoding = keyof typeof BEST;

const [toBrotli, toGzip] = [promisify(brotliCompress), promisify(gzip)];

/**
 * Returns the best encoding that an `Accept-Encoding` names (RFC 9110, section 12.5.3); undefined to send the text as
 * it is.
 */
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
 * Compresses a response with an encoding that the caller accepts. The response must not contain both a secret and text
 * that a caller chose, because its length would tell how much the two have in common (BREACH).
 */
export function compressed<Status extends number>(
  answer: HttpResponse<Status>,
  request: WithHeaders,
): Promise<HttpResponse<Status>> {
  return toEncoded(answer, request, (encoding) => pack(answer.body, encoding, FAST));
}

/**
 * Compresses an answer that never changes, with an encoding that the caller accepts. Each encoding is made once and
 * kept.
 */
export function createCompressed<Status extends number>(answer: HttpResponse<Status>) {
  const made = new Map<Encoding, Promise<Uint8Array>>();
  return (request: WithHeaders): Promise<HttpResponse<Status>> =>
    toEncoded(answer, request, (encoding) => {
      const packed = made.get(encoding) ?? pack(answer.body, encoding, BEST);
      made.set(encoding, packed);
      return packed;
    });
}

async function toEncoded<Status extends number>(
  answer: HttpResponse<Status>,
  { headers }: WithHeaders,
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
