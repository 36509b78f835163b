import { fieldName, fieldNameFault } from "../../template/normalize-field.ts";
import { ServiceError } from "../../platform/service-error.ts";

/**
 * The operator's choice of a column for each name in a file's header, by the name as {@link fieldName} writes it. Null:
 * the file's column is left out.
 */
export type ColumnMap = ReadonlyMap<string, string | null>;

/**
 * Reasons why the preview of an imported file maps a column of the file to one of our columns, to a template field, or
 * to nothing.
 */
export const WHY_MAPPED = ["named", "chosen", "guessed", "field", "unused", "opt_out"] as const;
export type WhyMapped = (typeof WHY_MAPPED)[number];

/**
 * Parses choices such as `Opt-in date=consent_at`; `E-Mail=` leaves the column out. Throws a ServiceError (invalid) for
 * any other text.
 */
export function parseColumnMap(choices: readonly string[]): ColumnMap {
  return new Map(
    choices.map((choice) => {
      const [, name = "", column = ""] = /^(.*)=([^=]*)$/s.exec(choice) ?? [];
      const fault = name.trim() === "" ? "write it as header=column" : faultIn(column);
      if (fault !== undefined) throw new ServiceError("invalid", `the mapping ${JSON.stringify(choice)}: ${fault}`);
      return [fieldName(name), column.trim() === "" ? null : fieldName(column)];
    }),
  );
}

function faultIn(column: string): string | undefined {
  return column.trim() === "" ? undefined : fieldNameFault(fieldName(column));
}
