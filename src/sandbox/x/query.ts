/** A comma-separated parameter whose values X knows; `unknown` is the first that it does not. */
export interface Choices {
  readonly values: readonly string[];
  readonly unknown: { readonly name: string; readonly value: string } | undefined;
}

export function choicesOf(query: URLSearchParams, name: string, known: readonly string[]): Choices {
  const values = query.get(name)?.split(",") ?? [];
  const value = values.find((one) => !known.includes(one));
  return { values, unknown: value === undefined ? undefined : { name, value } };
}
