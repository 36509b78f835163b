/** @jsxImportSource preact */
import type { VNode } from "preact";
import type * as icons from "./icons.ts";

export type IconName = keyof typeof icons;

/** An icon. It is hidden from screen readers, because words next to it say the same. */
export function Icon({ name }: { readonly name: IconName }): VNode {
  return (
    <svg class="icon" aria-hidden="true">
      <use href={`#icon-${name}`} />
    </svg>
  );
}

export type Tone = "neutral" | "good" | "warn" | "bad" | "crit" | "info" | "accent";

/** Content of a badge: its tone, its icon, and one or two words. */
export type BadgeState = readonly [tone: Tone, icon: IconName, words: string];

export function Badge({ state: [tone, icon, words] }: { readonly state: BadgeState }): VNode {
  return (
    <span class={`badge ${tone}`}>
      <Icon name={icon} />
      {words.charAt(0).toUpperCase() + words.slice(1)}
    </span>
  );
}
