/** @jsxImportSource preact */
import type { VNode } from "preact";
import { countInWords, grouped, ALL_OF } from "../../platform/format-numbers-and-lists.ts";
import { Field, Select } from "../parts/action-form.tsx";
import { Sentences } from "../parts/table.tsx";
import { columnInWords, type Preview } from "./import-columns.tsx";

type ConsentProps = { readonly preview: Preview };

const BASES = ["opt_in", "dm_first", "none"] as const;

/**
 * Fields in which the operator states a consent once, for all rows that do not say it. They are unfolded if rows are
 * refused without it, or if the operator has stated one.
 */
export function ConsentOfAllRows({ preview: { stated, without_basis: without } }: ConsentProps): VNode {
  const isNeeded = without > 0;
  return (
    <section class={isNeeded ? "asks" : undefined}>
      {isNeeded ? (
        <p id="basis-needed" role="alert">
          <b>This file says when people agreed, not how: choose the basis for all rows.</b> Until then,{" "}
          {countInWords(without, "row is refused", "rows are refused")}.
        </p>
      ) : null}
      <details open={isNeeded || stated.basis !== "" || stated.source !== ""}>
        <summary>Consent of all rows that do not say it</summary>
        <div class="stated">
          <Select name="basis" label="Basis of consent" values={BASES} chosen={stated.basis} none="as the file says" />
          <Field
            label="Source of consent"
            name="consent_source"
            value={stated.source}
            maxLength={500}
            placeholder="Newsletter form"
          />
        </div>
      </details>
    </section>
  );
}

/** Number of people that the page names for each kind of evidence that they lack. */
const NAMED_MAX = 10;

/** Names the people of a previewed file whose consent lacks its date or source. */
export function LackingConsent({ preview: { lacking_evidence: lacking } }: ConsentProps): VNode | null {
  if (lacking.length === 0) return null;
  return (
    <section>
      <Sentences
        of={lacking.map(({ missing, count, first }) => {
          const more = count > NAMED_MAX ? ` and ${grouped(count - NAMED_MAX)} more` : "";
          const lacks = `${countInWords(count, "person has", "people have")} no ${ALL_OF.format(missing.map(columnInWords))}`;
          return `${lacks}: ${first.slice(0, NAMED_MAX).map(nameWithLine).join(", ")}${more}.`;
        })}
      />
    </section>
  );
}

function nameWithLine({ line, id, username }: Preview["lacking_evidence"][number]["first"][number]): string {
  return `${username === undefined ? id : `@${username}`} in line ${grouped(line)}`;
}
