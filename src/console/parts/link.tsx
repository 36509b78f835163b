/** @jsxImportSource preact */
import { createContext, h, type ComponentProps, type VNode } from "preact";
import { hrefAt } from "../hrefs.ts";
import { Icon } from "./icon.tsx";

/**
 * Context of all links on a page: the earlier moment that the page shows, as the operator entered it. Undefined if the
 * page shows the present.
 */
export const ShownMoment = createContext<string | undefined>(undefined);

/** A link that keeps the moment of the page. A link to another moment is a plain `<a>`, marked with `data-moment`. */
export function A({ href, ...rest }: Omit<ComponentProps<"a">, "href"> & { readonly href: string }): VNode {
  return (
    <ShownMoment.Consumer>
      {(asOf) => h("a", { href: asOf === undefined ? href : hrefAt(href, asOf), ...rest })}
    </ShownMoment.Consumer>
  );
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
  return (
    <form {...rest} method="get">
      {children}
      <ShownMoment.Consumer>
        {(asOf) => (asOf === undefined ? null : <input type="hidden" name="as_of" value={asOf} />)}
      </ShownMoment.Consumer>
    </form>
  );
}

interface OtherFieldsProps {
  readonly query: URLSearchParams;
  /** Names of parameters to leave out: those that the form itself sends, and those that its fields replace. */
  readonly names?: readonly string[];
}

/**
 * Hidden inputs that keep the page's other query parameters, because a GET form sends only its own fields. `as_of` is
 * left out: PageForm or a field of the form sends it.
 */
export function OtherFields({ query, names = [] }: OtherFieldsProps): VNode {
  return (
    <>
      {[...query].map(([name, value]) =>
        name === "as_of" || names.includes(name) ? null : <input type="hidden" name={name} value={value} />,
      )}
    </>
  );
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
