import { cloneElement, h, isValidElement, type ComponentChildren, type FunctionComponent, type VNode } from "preact";

type Attributes = Readonly<Record<string, unknown>> & { readonly children?: ComponentChildren };

/**
 * The same page, whose links to other pages and whose forms that ask for them keep the moment that is shown: no page has
 * to think of it. What has `data-moment` chooses a moment itself. Components are functions without hooks.
 */
export function keepMoment(page: VNode, asOf: string): VNode {
  return keep(page, asOf) as VNode;
}

function keep(node: ComponentChildren, asOf: string): ComponentChildren {
  if (Array.isArray(node)) return node.map((one: ComponentChildren) => keep(one, asOf));
  if (!isValidElement(node)) return node;
  const { type, props } = node as VNode<Attributes>;
  if (typeof type === "function") return keep((type as FunctionComponent<Attributes>)(props), asOf);
  const children = keep(props.children, asOf);
  if ("data-moment" in props) return cloneElement(node, {}, children);
  const { href, method } = props;
  if (type === "a" && typeof href === "string") return cloneElement(node, { href: hrefOf(href, asOf) }, children);
  if (type !== "form" || method !== "get") return cloneElement(node, {}, children);
  return cloneElement(node, {}, [children, h("input", { type: "hidden", name: "as_of", value: asOf })]);
}

/** A path of ours that is no operation of the API; a part of this page, and what is elsewhere, stay as they are. */
const PAGE = /^\/(?!\/|api\/|social\/)/;

function hrefOf(href: string, asOf: string): string {
  if (!PAGE.test(href)) return href;
  const { pathname, searchParams, hash } = new URL(href, "http://console");
  searchParams.set("as_of", asOf);
  return `${pathname}?${searchParams}${hash}`;
}
