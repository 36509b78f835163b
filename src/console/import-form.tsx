/** @jsxImportSource preact */
import type { VNode } from "preact";
import { SENT_BYTES_MAX } from "../outreach/recipients-file/limits.ts";
import { ActionForm } from "./action-form.tsx";
import type { View } from "./view.ts";

const MIB = 1024 * 1024;

/** A file of people, chosen in the browser. */
export function ImportForm({ view }: { readonly view: View }): VNode | null {
  if (view.formToken === undefined) return null;
  return (
    <section aria-labelledby="import">
      <h2 id="import">Import people</h2>
      <p class="quiet" id="import-says">
        A CSV, JSON or JSON Lines file of up to {SENT_BYTES_MAX / MIB} MiB, with the columns username (or handle) and/or
        id, name and basis; all others become template fields. Whoever is known is updated.
      </p>
      <ActionForm view={view} back="/people" action="/console/recipients" sendsFile>
        <label>
          File{" "}
          <input
            type="file"
            name="file"
            accept=".csv,.tsv,.txt,.json,.jsonl,.ndjson"
            required
            aria-describedby="import-says"
          />
        </label>{" "}
        <button>Import</button>
      </ActionForm>
    </section>
  );
}
