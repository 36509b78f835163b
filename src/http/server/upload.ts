import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import { fitting, readBytes, refusePacked, UNCHECKED, type RequestBody } from "./body.ts";
import type { SentFile, SentForm } from "./endpoint.ts";
import { problems } from "./problem.ts";

interface FileOptions<Kind> {
  /** Media types that are taken; what each stands for, and what a file of it holds at its simplest. */
  readonly kinds: ReadonlyMap<string, readonly [Kind, TSchema]>;
  readonly bytesMax: number;
}

/** A body that is a file, such as `curl --data-binary` sends. What it holds is not looked at. */
export function fileBody<Kind>({ kinds, bytesMax }: FileOptions<Kind>): RequestBody<SentFile<Kind>> {
  const [[type, schema] = ["", Type.String()] as const, ...others] = [...kinds].map(
    ([name, [, held]]) => [name, held] as const,
  );
  return {
    "~standard": UNCHECKED,
    schema,
    type,
    others: new Map(others),
    async read(request) {
      const { headers } = request;
      const [kind] = kinds.get(parseMediaType(headers.get("content-type") ?? "")) ?? [];
      if (kind === undefined) throw problems.unsupportedType([...kinds.keys()].join(" or "));
      refusePacked(headers);
      return readBytes(request, bytesMax, (bytes) => ({ bytes, kind }));
    },
    fit: (file) => file as SentFile<Kind>,
  };
}

/** Empty where its parameters say that it is in an encoding other than Unicode's. */
function parseMediaType(header: string): string {
  const [type = "", ...parameters] = header.toLowerCase().split(";");
  const charset = parameters.map((one) => /^ *charset="?([^"]*)"? *$/.exec(one)?.[1]).find((one) => one !== undefined);
  return charset === undefined || /^utf-(8|16)$/.test(charset) ? type.trim() : "";
}

const FILE_FIELD = "file";

/** A form with one file; `fields`: the others, which are texts. */
export function uploadBody(fields: TObject, bytesMax: number): RequestBody<SentForm> {
  const fit = fitting(fields);
  return {
    "~standard": UNCHECKED,
    schema: Type.Object({ ...fields.properties, [FILE_FIELD]: Type.String({ description: "The file." }) }),
    type: "multipart/form-data",
    async read(request) {
      const type = request.headers.get("content-type") ?? "";
      if (parseMediaType(type) !== "multipart/form-data") throw problems.unsupportedType("multipart/form-data");
      refusePacked(request.headers);
      const sent = await readBytes(request, bytesMax, (bytes) => readParts(bytes, type));
      const texts = [...sent].filter((part): part is [string, string] => typeof part[1] === "string");
      const file = sent.get(FILE_FIELD);
      if (!(file instanceof File)) throw problems.invalid([{ path: `/${FILE_FIELD}`, message: "no file was sent" }]);
      return {
        fields: fit(Object.fromEntries(texts)) as SentForm["fields"],
        file: { bytes: await file.bytes(), kind: file.name },
      };
    },
    fit: (form) => form as SentForm,
  };
}

async function readParts(bytes: Uint8Array<ArrayBuffer>, type: string): Promise<FormData> {
  try {
    return await new Response(bytes, { headers: { "content-type": type } }).formData();
  } catch {
    throw problems.malformed("The body is no form.");
  }
}
