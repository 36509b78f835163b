/**
 * Icon of the package lucide: the elements of an SVG of 24 by 24. The package's own types cover only its list of all
 * icons, which takes long to load.
 */
declare module "lucide/dist/esm/icons/*.mjs" {
  const icon: readonly (readonly [tag: string, attributes: Readonly<Record<string, string>>])[];
  export default icon;
}
