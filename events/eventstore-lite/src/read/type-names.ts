import type { DatabaseReader } from "./database-reader.ts";

/** Makes the function that names a type by its row. Types are never renamed, and an application has tens of them. */
export function createTypeNames(reader: DatabaseReader): (type: number) => string {
  const names: string[] = [];
  const find = (type: number): string => {
    const name = reader.get("SELECT name FROM types WHERE id = ?", type)?.["name"];
    return typeof name === "string" ? name : `type ${type}`;
  };
  return (type) => (names[type] ??= find(type));
}
