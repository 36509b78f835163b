/**
 * Returns an object without its undefined members. With `exactOptionalPropertyTypes`, an optional member must be left
 * out rather than be undefined.
 */
export function omitUndefined<Members extends object>(members: Members): Defined<Members> {
  const defined: Partial<Members> = {};
  for (const name in members) if (members[name] !== undefined) defined[name] = members[name];
  return defined as unknown as Defined<Members>;
}

type Defined<Members> = {
  [Name in keyof Members as undefined extends Members[Name] ? never : Name]: Members[Name];
} & { [Name in keyof Members as undefined extends Members[Name] ? Name : never]?: Exclude<Members[Name], undefined> };
