/** @jsxImportSource preact */
import { h, type VNode } from "preact";
import archive from "lucide/dist/esm/icons/archive.mjs";
import ban from "lucide/dist/esm/icons/ban.mjs";
import bell from "lucide/dist/esm/icons/bell.mjs";
import bot from "lucide/dist/esm/icons/bot.mjs";
import check from "lucide/dist/esm/icons/check.mjs";
import chevronDown from "lucide/dist/esm/icons/chevron-down.mjs";
import chevronLeft from "lucide/dist/esm/icons/chevron-left.mjs";
import chevronRight from "lucide/dist/esm/icons/chevron-right.mjs";
import ellipsis from "lucide/dist/esm/icons/ellipsis.mjs";
import keyboard from "lucide/dist/esm/icons/keyboard.mjs";
import fileText from "lucide/dist/esm/icons/file-text.mjs";
import circleDollarSign from "lucide/dist/esm/icons/circle-dollar-sign.mjs";
import circleQuestionMark from "lucide/dist/esm/icons/circle-question-mark.mjs";
import clock from "lucide/dist/esm/icons/clock.mjs";
import equal from "lucide/dist/esm/icons/equal.mjs";
import eye from "lucide/dist/esm/icons/eye.mjs";
import flaskConical from "lucide/dist/esm/icons/flask-conical.mjs";
import house from "lucide/dist/esm/icons/house.mjs";
import inbox from "lucide/dist/esm/icons/inbox.mjs";
import keyRound from "lucide/dist/esm/icons/key-round.mjs";
import link from "lucide/dist/esm/icons/link.mjs";
import list from "lucide/dist/esm/icons/list.mjs";
import megaphone from "lucide/dist/esm/icons/megaphone.mjs";
import mousePointer2 from "lucide/dist/esm/icons/mouse-pointer-2.mjs";
import octagonAlert from "lucide/dist/esm/icons/octagon-alert.mjs";
import pause from "lucide/dist/esm/icons/pause.mjs";
import play from "lucide/dist/esm/icons/play.mjs";
import reply from "lucide/dist/esm/icons/reply.mjs";
import rotateCw from "lucide/dist/esm/icons/rotate-cw.mjs";
import search from "lucide/dist/esm/icons/search.mjs";
import send from "lucide/dist/esm/icons/send.mjs";
import shieldCheck from "lucide/dist/esm/icons/shield-check.mjs";
import skipForward from "lucide/dist/esm/icons/skip-forward.mjs";
import slidersHorizontal from "lucide/dist/esm/icons/sliders-horizontal.mjs";
import timer from "lucide/dist/esm/icons/timer.mjs";
import trash from "lucide/dist/esm/icons/trash.mjs";
import triangleAlert from "lucide/dist/esm/icons/triangle-alert.mjs";
import upload from "lucide/dist/esm/icons/upload.mjs";
import users from "lucide/dist/esm/icons/users.mjs";
import x from "lucide/dist/esm/icons/x.mjs";

const ICONS = {
  archive,
  ban,
  bell,
  bot,
  check,
  "chevron-down": chevronDown,
  "chevron-left": chevronLeft,
  "chevron-right": chevronRight,
  ellipsis,
  keyboard,
  "file-text": fileText,
  "circle-dollar-sign": circleDollarSign,
  "circle-question-mark": circleQuestionMark,
  clock,
  equal,
  eye,
  "flask-conical": flaskConical,
  house,
  inbox,
  "key-round": keyRound,
  link,
  list,
  megaphone,
  "mouse-pointer-2": mousePointer2,
  "octagon-alert": octagonAlert,
  pause,
  play,
  reply,
  "rotate-cw": rotateCw,
  search,
  send,
  "shield-check": shieldCheck,
  "skip-forward": skipForward,
  "sliders-horizontal": slidersHorizontal,
  timer,
  trash,
  "triangle-alert": triangleAlert,
  upload,
  users,
  x,
} as const;

export type IconName = keyof typeof ICONS;

/** An icon. It is hidden from screen readers, because words next to it say the same. */
export function Icon({ name }: { readonly name: IconName }): VNode {
  return (
    <svg class="icon" aria-hidden="true">
      <use href={`#icon-${name}`} />
    </svg>
  );
}

/**
 * The drawings of the icons, which all icons of a page refer to. An element around them hides them, because browsers
 * ignore `hidden` on an `svg`, which then adds 150 px to the page.
 */
export function IconSymbols(): VNode {
  return (
    <div hidden>
      <svg>
        {Object.entries(ICONS).map(([name, elements]) => (
          <symbol id={`icon-${name}`} viewBox="0 0 24 24">
            {elements.map(([tag, attributes]) => h(tag, attributes))}
          </symbol>
        ))}
      </svg>
    </div>
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
