/** @jsxImportSource preact */
import { h, type ComponentProps, type VNode } from "preact";
import { useContext } from "preact/hooks";
import { hrefAt } from "../hrefs.ts";
import { ShownView, useView } from "../page-context.ts";
import { Icon } from "./icon-and-badge.tsx";

/** A link that keeps the moment of the page. A link to another moment is a plain `<a>`, marked with `data-moment`. */
export function A({ href, ...rest }: Omit<ComponentProps<"a">, "href"> & { readonly href: string }) {
  const asOf = useContext(ShownView)?.asOf;
  return h("a", { href: asOf === undefined ? href : hrefAt(href, asOf), ...rest });
}

/** A link that opens the import of a list, in a dialog or, without script, as a page. */
export function ImportLink({ look, label }: { readonly look: string; readonly label: string }): VNode {
  return (
    <A class={look} href="/people/import" data-import>
      <Icon name="upload" />
      {label}
    </A>
  );
}

/** A form that leads to another page, and keeps the present page's moment. */
export function PageForm({ children, ...rest }: Omit<ComponentProps<"form">, "method">): VNode {
  const { asOf } = useView();
  return (
    <form {...rest} method="get">
      {children}
      <HiddenFields of={[["as_of", asOf]]} />
    </form>
  );
}

/** Hidden inputs of a form, by name. An undefined value is left out. */
export function HiddenFields({ of }: { of: readonly (readonly [name: string, value: string | undefined])[] }): VNode {
  const given = of.filter(([, value]) => value !== undefined);
  return (
    <>
      {given.map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
    </>
  );
}

/**
 * Hidden inputs that keep the page's other query parameters, because a GET form sends only its own fields. Parameters
 * in `names`, and `as_of`, are left out, because the form has other fields for them.
 */
export function OtherFields({ names = [] }: { readonly names?: readonly string[] }): VNode {
  const others = [...useView().query].filter(([name]) => name !== "as_of" && !names.includes(name));
  return <HiddenFields of={others} />;
}

interface TabsProps {
  readonly label: string;
  readonly tabs: readonly (readonly [href: string, words: string, isCurrent: boolean])[];
  /** True if a tab changes the page in place, so that the window stays where it is scrolled to. */
  readonly isInPlace?: boolean;
}

/** Links to the parts of a page, of which one is shown. */
export function Tabs({ label, tabs, isInPlace = false }: TabsProps): VNode {
  return (
    <ul class="tabs" aria-label={label}>
      {tabs.map(([href, words, isCurrent]) => (
        <li>
          <A href={href} aria-current={isCurrent ? "true" : undefined} data-apply={isInPlace ? "" : undefined}>
            {words}
          </A>
        </li>
      ))}
    </ul>
  );
}
