// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { checkSignature, sha256, type SignedRequest } from "../../sandbox/s3/signature.ts";

/** AWS's examples with signatures: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html */
const CREDENTIALS = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};
const AT = { region: "us-east-1", now: Date.parse("2013-05-24T00:00:00Z") };
const BASE = { host: "examplebucket.s3.amazonaws.com", "x-amz-date": "20130524T000000Z" };

interface Example {
  readonly request: Omit<SignedRequest, "headers">;
  readonly more: Readonly<Record<string, string>>;
  readonly body: string;
  readonly names: string;
  readonly signature: string;
}

const EXAMPLES: Readonly<Record<string, Example>> = {
  "a file": {
    request: { method: "GET", path: "/test.txt", query: "" },
    more: { range: "bytes=0-9" },
    body: "",
    names: "host;range;x-amz-content-sha256;x-amz-date",
    signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  },
  "a written file": {
    request: { method: "PUT", path: "/test$file.text", query: "" },
    more: { date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" },
    body: "Welcome to Amazon S3.",
    names: "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
    signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  },
  "a bucket's lifecycle": {
    request: { method: "GET", path: "/", query: "lifecycle" },
    more: {},
    body: "",
    names: "host;x-amz-content-sha256;x-amz-date",
    signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
  },
  "a list": {
    request: { method: "GET", path: "/", query: "max-keys=2&prefix=J" },
    more: {},
    body: "",
    names: "host;x-amz-content-sha256;x-amz-date",
    signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  },
};

function signedRequest({ request, more, body, names, signature }: Example): SignedRequest {
  const authorization = `AWS4-HMAC-SHA256 Credential=${CREDENTIALS.accessKeyId}/20130524/us-east-1/s3/aws4_request,SignedHeaders=${names},Signature=${signature}`;
  return { ...request, headers: { ...BASE, ...more, "x-amz-content-sha256": sha256(body), authorization } };
}

describe.each(Object.entries(EXAMPLES))("AWS's example of %s", (_what, example) => {
  const right = signedRequest(example);
  const check = (request: SignedRequest, at = AT) => checkSignature(request, CREDENTIALS, at);

  test("is accepted", () => expect(check(right)).toBeUndefined());

  test("is refused with a changed method, path, query, header, key or body", () => {
    const { headers } = right;
    const wrong = [
      { ...right, method: "DELETE" },
      { ...right, path: "/other" },
      { ...right, query: "prefix=K" },
      { ...right, headers: { ...headers, host: "other.example" } },
      { ...right, headers: { ...headers, "x-amz-content-sha256": sha256("other") } },
      { ...right, headers: { ...headers, authorization: headers["authorization"]!.replace(/.$/, "0") } },
    ];
    expect(wrong.map((one) => check(one))).toEqual(wrong.map(() => "SignatureDoesNotMatch"));
    expect(checkSignature(right, { ...CREDENTIALS, secretAccessKey: "other" }, AT)).toBe("SignatureDoesNotMatch");
    expect(checkSignature(right, { ...CREDENTIALS, accessKeyId: "other" }, AT)).toBe("InvalidAccessKeyId");
  });

  test("is refused unsigned, for another region, 15 minutes late, or with an added header", () => {
    const { headers } = right;
    expect(check({ ...right, headers: { ...headers, authorization: "" } })).toBe("AccessDenied");
    expect(check({ ...right, headers: { ...headers, "x-amz-acl": "public-read" } })).toBe("AccessDenied");
    expect(check(right, { ...AT, region: "eu-central-1" })).toBe("AuthorizationHeaderMalformed");
    expect(check(right, { ...AT, now: AT.now + 15 * 60_000 + 1 })).toBe("RequestTimeTooSkewed");
  });
});
